import { Agent, createServer, type IncomingMessage, type ServerResponse, request as send } from 'node:http';
import { answerJson, closeNow, listenOnLoopback, readBody } from './http.ts';

/** A request on its way to a broker, as rules see it. */
export interface GateRequest {
  /** Operation, e.g. `AWSEvents.PutEvents` or `AmazonSQS.SendMessageBatch`. */
  readonly target: string;
  readonly body: string;
  /** Names the sending program where it set `AWS_SDK_UA_APP_ID`. */
  readonly userAgent: string;
}

/** What happens to a request that meets a rule. */
export type Fault =
  /** The broker never sees it; this status is the answer. */
  | { readonly kind: 'status'; readonly status: number }
  /** The broker never sees it; the answer is 200, and that each entry of the batch failed by the broker's own fault. */
  | { readonly kind: 'entries' }
  /** The broker never sees it; the connection breaks. */
  | { readonly kind: 'reset' }
  /** The broker accepts it; the connection breaks before the sender hears of it. */
  | { readonly kind: 'lost-reply' }
  /** Goes through, later. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Stops: before the broker sees it, or with its answer in hand. `until` is called then, and says how it goes on. */
  | {
      readonly kind: 'hold';
      readonly until: () => Promise<'go on' | 'break off'>;
      readonly when: 'before' | 'after';
    };

/** Which requests a fault hits. */
export interface FaultRule {
  readonly fault: Fault;
  /** @default every request */
  readonly match?: (request: GateRequest) => boolean;
  /** After so many hits the rule is gone. @default without limit */
  readonly times?: number;
  /** Told at each hit, before the fault happens. */
  readonly onHit?: (request: GateRequest) => void;
}

/** Stands before a broker's endpoint and lets things go wrong. */
export interface FaultGate {
  /** What clients use as the broker's endpoint. */
  readonly url: string;
  /** Adds a rule; the answer takes it away. The first rule that matches decides. */
  inject(rule: FaultRule): () => void;
  /** The broker is gone: connections break and new ones are refused. */
  down(): Promise<void>;
  /** The broker is back, at the same address. */
  up(): Promise<void>;
  stop(): Promise<void>;
}

/** Opens a gate on loopback in front of an endpoint. */
export async function openGate(endpoint: string): Promise<FaultGate> {
  const rules: { rule: FaultRule; left: number }[] = [];
  const agent = new Agent({ keepAlive: true });
  const goal = new URL(endpoint);

  function decide(request: GateRequest): Fault | undefined {
    const found = rules.find(({ rule, left }) => left > 0 && (rule.match?.(request) ?? true));
    if (!found) return undefined;
    found.left -= 1;
    if (found.left <= 0) rules.splice(rules.indexOf(found), 1);
    found.rule.onHit?.(request);
    return found.rule.fault;
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request, 8 * 1024 * 1024);
    const fault = decide({
      target: String(request.headers['x-amz-target'] ?? ''),
      body: body.toString('utf8'),
      userAgent: String(request.headers['user-agent'] ?? ''),
    });
    if (fault?.kind === 'status') {
      return answerJson(response, fault.status, {
        __type: 'InternalFailure',
        message: 'the broker is unwell',
      });
    }
    if (fault?.kind === 'entries') return answerJson(response, 200, everyEntryFailed(body.toString('utf8')));
    if (fault?.kind === 'reset') return breakOff(response);
    if (fault?.kind === 'delay') await new Promise((resolve) => setTimeout(resolve, fault.ms));
    if (fault?.kind === 'hold' && fault.when === 'before' && (await fault.until()) === 'break off') {
      return breakOff(response);
    }
    if (response.destroyed) return;
    const answer = await forward(request, body, { agent, goal });
    const lost =
      fault?.kind === 'lost-reply' ||
      (fault?.kind === 'hold' && fault.when === 'after' && (await fault.until()) === 'break off');
    if (lost) return breakOff(response);
    response.writeHead(answer.status, answer.headers);
    response.end(answer.body);
  }

  const create = () =>
    createServer((request, response) => {
      handle(request, response).catch(() => breakOff(response));
    });
  let server = create();
  const port = await listenOnLoopback(server, 0);
  return {
    url: `http://127.0.0.1:${port}`,
    inject(rule) {
      const entry = { rule, left: rule.times ?? Number.POSITIVE_INFINITY };
      rules.push(entry);
      return () => {
        const index = rules.indexOf(entry);
        if (index >= 0) rules.splice(index, 1);
      };
    },
    async down() {
      await closeNow(server);
    },
    async up() {
      if (server.listening) return;
      server = create();
      await listenOnLoopback(server, port);
    },
    async stop() {
      await closeNow(server);
      agent.destroy();
    },
  };
}

/** What SQS and EventBridge answer of a batch then, in one: each client reads what it knows. */
function everyEntryFailed(body: string): object {
  const { Entries: entries = [] } = JSON.parse(body) as { readonly Entries?: readonly { Id?: string }[] };
  const [code, message] = ['InternalFailure', 'the broker is unwell'];
  return {
    Successful: [],
    Failed: entries.map(({ Id }) => ({ Id, Code: code, Message: message, SenderFault: false })),
    FailedEntryCount: entries.length,
    Entries: entries.map(() => ({ ErrorCode: code, ErrorMessage: message })),
  };
}

function breakOff(response: ServerResponse): void {
  response.socket?.resetAndDestroy();
}

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[]>;
  readonly body: Buffer;
}

async function forward(
  request: IncomingMessage,
  body: Buffer,
  { agent, goal }: { agent: Agent; goal: URL },
): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const onward = send(
      {
        agent,
        host: goal.hostname,
        port: goal.port,
        method: request.method,
        path: request.url,
        headers: request.headers,
      },
      (reply) => {
        readBody(reply, 16 * 1024 * 1024).then((bytes) => {
          const { connection: _, 'transfer-encoding': __, ...rest } = reply.headers;
          const headers: Record<string, string | string[]> = {};
          for (const [name, value] of Object.entries(rest)) if (value !== undefined) headers[name] = value;
          headers['content-length'] = String(bytes.length);
          resolve({ status: reply.statusCode ?? 502, headers, body: bytes });
        }, reject);
      },
    );
    onward.once('error', reject);
    onward.end(body);
  });
}
