import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import { type EventPattern, matches } from './event-pattern.ts';
import { answerJson, BodyTooLarge, closeNow, listenOnLoopback, readBody } from './http.ts';
import { entryBytes, type PutEventsEntry, type Refusal, refuseCall, refuseEntry } from './put-events.ts';
import { type LocalQueue, localAws } from './sqs.ts';

/** Sends what meets the pattern to a queue. */
export interface Rule {
  readonly bus: string;
  readonly name: string;
  readonly pattern: EventPattern;
  readonly queue: LocalQueue;
}

/** What became of one accepted event, for those who watch. */
export interface AcceptedEvent {
  readonly bus: string;
  readonly id: string;
  readonly source: string;
  readonly detailType: string;
  readonly detail: string;
  readonly bytes: number;
  /** Names of the rules that it met; none where no rule wanted it. */
  readonly rules: readonly string[];
  /** True where its bus doesn't exist: answered as a success and lost, as on AWS. */
  readonly lost: boolean;
}

export interface EventBridgeOptions {
  /** Names of the buses that exist; `default` always does. */
  readonly buses: readonly string[];
  readonly rules: readonly Rule[];
  /** Where the rules' queues are. */
  readonly sqsEndpoint: string;
  readonly port?: number;
  readonly onEvent?: (event: AcceptedEvent) => void;
}

/** EventBridge in this process, on loopback: strict where AWS is strict, and careless where AWS is careless. */
export interface LocalEventBridge {
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** Speaks enough of EventBridge's JSON protocol for PutEvents and DescribeEventBus. */
export async function startEventBridge(options: EventBridgeOptions): Promise<LocalEventBridge> {
  const buses = new Set([...options.buses, 'default']);
  const sqs = new SQSClient({
    endpoint: options.sqsEndpoint,
    region: localAws.region,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });

  async function putEvents(entries: readonly PutEventsEntry[]): Promise<unknown> {
    const deliveries = new Map<LocalQueue, string[]>();
    const results = entries.map((entry) => {
      const refusal = refuseEntry(entry);
      if (refusal) return { ErrorCode: refusal.code, ErrorMessage: refusal.message };
      const event = accept(entry, deliveries);
      options.onEvent?.(event);
      return { EventId: event.id };
    });
    // Delivered before the call is answered, so that a test which has the answer may count what arrived.
    await Promise.all([...deliveries].map(([queue, bodies]) => deliver(sqs, queue, bodies)));
    return { FailedEntryCount: results.filter((result) => 'ErrorCode' in result).length, Entries: results };
  }

  function accept(entry: PutEventsEntry, deliveries: Map<LocalQueue, string[]>): AcceptedEvent {
    const bus = busName(entry.EventBusName ?? 'default');
    const id = randomUUID();
    const source = entry.Source ?? '';
    const detailType = entry.DetailType ?? '';
    const lost = !buses.has(bus);
    const met = options.rules.filter(
      (rule) => rule.bus === bus && !lost && matches(rule.pattern, { source, detailType }),
    );
    const body = eventText(id, entry);
    for (const rule of met) deliveries.set(rule.queue, [...(deliveries.get(rule.queue) ?? []), body]);
    return {
      bus,
      id,
      source,
      detailType,
      detail: entry.Detail ?? '',
      bytes: entryBytes(entry),
      rules: met.map((rule) => rule.name),
      lost,
    };
  }

  function describe(name: string): Refusal | { Name: string; Arn: string } {
    const bus = busName(name);
    if (!buses.has(bus)) {
      return { code: 'ResourceNotFoundException', message: `Event bus ${bus} does not exist.` };
    }
    return { Name: bus, Arn: `arn:aws:events:${localAws.region}:${localAws.account}:event-bus/${bus}` };
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = (await readBody(request, 8 * 1024 * 1024)).toString('utf8');
    const input = JSON.parse(text || '{}') as { Entries?: unknown; Name?: string };
    switch (request.headers['x-amz-target']) {
      case 'AWSEvents.PutEvents': {
        const refusal = refuseCall(input.Entries);
        if (refusal) return refuse(response, refusal);
        return answerJson(response, 200, await putEvents(input.Entries as PutEventsEntry[]), jsonProtocol);
      }
      case 'AWSEvents.DescribeEventBus': {
        const answer = describe(input.Name ?? 'default');
        return 'code' in answer ? refuse(response, answer) : answerJson(response, 200, answer, jsonProtocol);
      }
      default:
        return refuse(response, { code: 'UnknownOperationException', message: 'not known to the local bus' });
    }
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (error instanceof SyntaxError || error instanceof BodyTooLarge) {
        return refuse(response, { code: 'SerializationException', message: error.message });
      }
      return answerJson(response, 500, { __type: 'InternalException', message: String(error) }, jsonProtocol);
    });
  });
  const port = await listenOnLoopback(server, options.port ?? 0);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async stop() {
      await closeNow(server);
      sqs.destroy();
    },
  };
}

const jsonProtocol = { 'content-type': 'application/x-amz-json-1.1' };

function refuse(response: ServerResponse, { code, message }: Refusal): void {
  answerJson(response, 400, { __type: code, message }, { ...jsonProtocol, 'x-amzn-errortype': code });
}

/** A bus is named, or given by its ARN. */
function busName(nameOrArn: string): string {
  return nameOrArn.startsWith('arn:') ? (nameOrArn.split('/').pop() ?? nameOrArn) : nameOrArn;
}

/** The event as a queue receives it. The detail goes in as it came: parsing it would round large numbers. */
function eventText(id: string, entry: PutEventsEntry): string {
  const at = entry.Time === undefined ? new Date() : new Date(entry.Time * 1000);
  const head = JSON.stringify({
    version: '0',
    id,
    'detail-type': entry.DetailType,
    source: entry.Source,
    account: localAws.account,
    time: `${at.toISOString().slice(0, 19)}Z`,
    region: localAws.region,
    resources: entry.Resources ?? [],
  });
  return forEmulator(`${head.slice(0, -1)},"detail":${entry.Detail}}`);
}

/** The SQS emulator refuses characters above U+FFFF, which AWS takes. In JSON text they can be written as escapes. */
function forEmulator(json: string): string {
  return json.replace(/[\uD800-\uDFFF]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16)}`);
}

/** Sends one by one where they are large: a call takes ten messages, and as many bytes as one message may have. */
async function deliver(sqs: SQSClient, queue: LocalQueue, bodies: readonly string[]): Promise<void> {
  const large = bodies.reduce((sum, body) => sum + Buffer.byteLength(body), 0) > 1_000_000;
  const calls = large ? bodies.map((body) => [body]) : [bodies];
  for (const call of calls) {
    const answer = await sqs.send(
      new SendMessageBatchCommand({
        QueueUrl: queue.url,
        Entries: call.map((body, index) => ({ Id: String(index), MessageBody: body })),
      }),
    );
    const failed = answer.Failed ?? [];
    if (failed.length > 0) throw new Error(`queue ${queue.name} refused an event: ${failed[0]?.Message}`);
  }
}
