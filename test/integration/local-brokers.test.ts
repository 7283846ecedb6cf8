import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  DescribeEventBusCommand,
  EventBridgeClient,
  PutEventsCommand,
  type PutEventsRequestEntry,
} from '@aws-sdk/client-eventbridge';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type LocalEventBridge, startEventBridge } from '../../local/eventbridge.ts';
import { type FaultGate, openGate } from '../../local/faults.ts';
import { type LocalQueue, type LocalSqs, startSqs } from '../../local/sqs.ts';

const sdk = {
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  maxAttempts: 1,
};

let sqs: LocalSqs;
let bridge: LocalEventBridge;
let gate: FaultGate;
let invoicing: LocalQueue;
let emails: LocalQueue;
let events: EventBridgeClient;

const entry = (fields: Partial<PutEventsRequestEntry> = {}): PutEventsRequestEntry => ({
  Source: 'orders-service',
  DetailType: 'order.placed',
  Detail: '{"orderId":"1"}',
  EventBusName: 'app',
  ...fields,
});
const put = (...Entries: PutEventsRequestEntry[]) => events.send(new PutEventsCommand({ Entries }));

beforeAll(async () => {
  sqs = await startSqs();
  invoicing = await sqs.createQueue('invoicing');
  emails = await sqs.createQueue('emails');
  bridge = await startEventBridge({
    buses: ['app'],
    sqsEndpoint: sqs.endpoint,
    rules: [
      { bus: 'app', name: 'invoicing', pattern: { 'detail-type': ['order.placed'] }, queue: invoicing },
      {
        bus: 'app',
        name: 'emails',
        pattern: { source: ['orders-service'], 'detail-type': ['order.placed', 'order.sent'] },
        queue: emails,
      },
    ],
  });
  gate = await openGate(bridge.endpoint);
  events = new EventBridgeClient({ ...sdk, endpoint: gate.url });
});

afterAll(async () => {
  events.destroy();
  await gate.stop();
  await bridge.stop();
  await sqs.stop();
});

async function take(queue: LocalQueue): Promise<readonly Record<string, unknown>[]> {
  const bodies = await sqs.bodies(queue);
  await fetch(sqs.endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'AmazonSQS.PurgeQueue' },
    body: JSON.stringify({ QueueUrl: queue.url }),
  });
  return bodies.map((body) => JSON.parse(body) as Record<string, unknown>);
}

describe('local: the brokers listen on loopback only', () => {
  it('on no other address of this machine', async () => {
    const others = Object.values(networkInterfaces())
      .flat()
      .filter((address) => address !== undefined && address.family === 'IPv4' && !address.internal)
      .map((address) => address?.address);
    for (const endpoint of [sqs.endpoint, bridge.endpoint, gate.url]) {
      expect(new URL(endpoint).hostname).toBe('127.0.0.1');
      for (const address of others) {
        await expect(fetch(`http://${address}:${new URL(endpoint).port}/`)).rejects.toThrow();
      }
    }
  });
});

describe('local EventBridge: routes as AWS does', () => {
  it('an event to the queues of the rules that it meets, in the shape that a queue receives', async () => {
    const answer = await put(entry(), entry({ DetailType: 'order.sent' }), entry({ DetailType: 'other' }));
    expect(answer.FailedEntryCount).toBe(0);
    const [invoice, ...noMore] = await take(invoicing);
    expect(noMore).toEqual([]);
    expect(invoice).toMatchObject({
      version: '0',
      id: answer.Entries?.[0]?.EventId,
      source: 'orders-service',
      'detail-type': 'order.placed',
      detail: { orderId: '1' },
      resources: [],
    });
    expect(await take(emails)).toHaveLength(2);
  });

  it('a detail digit by digit, and characters beyond the basic plane', async () => {
    await put(entry({ Detail: '{"n":12345678901234567890,"s":"🦉"}' }));
    const [body] = await sqs.bodies(invoicing);
    expect(body).toContain('"n":12345678901234567890');
    const [event] = await take(invoicing);
    expect(event).toMatchObject({ detail: { s: '🦉' } });
    await take(emails);
  });

  it('an event to a bus that does not exist nowhere, and answers success', async () => {
    const answer = await put(entry({ EventBusName: 'typo' }));
    expect(answer.FailedEntryCount).toBe(0);
    expect(answer.Entries?.[0]?.EventId).toBeDefined();
    expect(await take(invoicing)).toEqual([]);
  });

  it('DescribeEventBus tells an existing bus from a missing one', async () => {
    const found = await events.send(new DescribeEventBusCommand({ Name: 'app' }));
    expect(found.Arn).toBe('arn:aws:events:us-east-1:000000000000:event-bus/app');
    await expect(events.send(new DescribeEventBusCommand({ Name: 'typo' }))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
  });
});

describe('local EventBridge: refuses what AWS refuses', () => {
  const nested = (depth: number) => `{"a":${'['.repeat(depth - 1)}${']'.repeat(depth - 1)}}`;
  const refusedEntries: [string, Partial<PutEventsRequestEntry>, string][] = [
    ['no source', { Source: undefined as unknown as string }, 'InvalidArgument'],
    ['a source of 257 characters', { Source: 's'.repeat(257) }, 'InvalidArgument'],
    ['a source that begins with aws.', { Source: 'aws.orders' }, 'NotAuthorizedForSourceException'],
    ['a detail type of 129 characters', { DetailType: 't'.repeat(129) }, 'InvalidArgument'],
    ['a detail that is no JSON', { Detail: '{"a":' }, 'MalformedDetail'],
    ['a detail that is an array', { Detail: '[1]' }, 'MalformedDetail'],
    ['a detail that is a string', { Detail: '"text"' }, 'MalformedDetail'],
    ['a detail 1001 levels deep', { Detail: nested(1001) }, 'MalformedDetail'],
  ];
  it.each(refusedEntries)('%s: that entry only', async (_, fields, code) => {
    const answer = await put(entry(), entry(fields), entry({ DetailType: 'order.sent' }));
    expect(answer.FailedEntryCount).toBe(1);
    expect(answer.Entries?.map((one) => one.ErrorCode)).toEqual([undefined, code, undefined]);
    expect(await take(invoicing)).toHaveLength(1);
    expect(await take(emails)).toHaveLength(2);
  });

  it('takes what just fits', async () => {
    const answer = await put(
      entry({ Source: 's'.repeat(256), DetailType: 't'.repeat(128), Detail: nested(1000) }),
    );
    expect(answer.FailedEntryCount).toBe(0);
  });

  const refusedCalls: [string, PutEventsRequestEntry[]][] = [
    ['no entries', []],
    ['eleven entries', Array.from({ length: 11 }, () => entry())],
    [
      'a million bytes in all',
      Array.from({ length: 4 }, () => entry({ Detail: `{"a":"${'x'.repeat(250_000)}"}` })),
    ],
    ['no entry with any of the three', [{ EventBusName: 'app' }]],
  ];
  it.each(refusedCalls)('%s: the whole call', async (_, entries) => {
    await expect(put(...entries)).rejects.toMatchObject({ name: 'ValidationException' });
    expect(await take(invoicing)).toEqual([]);
  });
});

describe('local fault gate: the broker misbehaves on demand', () => {
  it('is down, and comes back at the same address', async () => {
    await gate.down();
    // A kept-alive connection breaks; the next one is refused.
    await expect(put(entry())).rejects.toMatchObject({ code: expect.stringMatching(/^ECONNRE/) });
    await expect(put(entry())).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await gate.up();
    expect((await put(entry())).FailedEntryCount).toBe(0);
    expect(await take(invoicing)).toHaveLength(1);
  });

  it('cuts a request that is under way when it goes down', async () => {
    const remove = gate.inject({ fault: { kind: 'delay', ms: 5000 } });
    const sending = expect(put(entry())).rejects.toMatchObject({ code: 'ECONNRESET' });
    await sleep(100);
    await gate.down();
    await sending;
    remove();
    await gate.up();
    expect(await take(invoicing)).toEqual([]);
  });

  it('answers 503 as often as asked, before the broker sees it', async () => {
    gate.inject({ fault: { kind: 'status', status: 503 }, times: 2 });
    for (const _ of [1, 2]) {
      await expect(put(entry())).rejects.toMatchObject({ $metadata: { httpStatusCode: 503 } });
    }
    await put(entry());
    expect(await take(invoicing)).toHaveLength(1);
  });

  it('loses the reply of what the broker has accepted', async () => {
    gate.inject({ fault: { kind: 'lost-reply' }, times: 1 });
    await expect(put(entry())).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await take(invoicing)).toHaveLength(1);
  });

  it('holds a reply until released, and hits only what matches', async () => {
    let release = (): void => undefined;
    const until = new Promise<'go on'>((resolve) => {
      release = () => resolve('go on');
    });
    const hits: string[] = [];
    gate.inject({
      fault: { kind: 'hold', until: () => until, when: 'after' },
      match: (request) => request.body.includes('order.held'),
      times: 1,
      onHit: (request) => hits.push(request.target),
    });
    let answered = false;
    const held = put(entry({ DetailType: 'order.held' })).then(() => {
      answered = true;
    });
    await put(entry({ DetailType: 'passes' }));
    expect(hits).toEqual(['AWSEvents.PutEvents']);
    expect(answered).toBe(false);
    release();
    await held;
    expect(answered).toBe(true);
  });

  it('keeps a held request from the broker when told to break off', async () => {
    gate.inject({ fault: { kind: 'hold', until: async () => 'break off', when: 'before' }, times: 1 });
    await take(invoicing);
    await expect(put(entry())).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(await take(invoicing)).toEqual([]);
  });
});

describe('local SQS', () => {
  it('serves queue URLs that can be connected to, FIFO too', async () => {
    const fifo = await sqs.createQueue('keyed', { fifo: true });
    expect(fifo.name).toBe('keyed.fifo');
    const client = new SQSClient({ ...sdk, endpoint: sqs.endpoint });
    const send = { QueueUrl: fifo.url, MessageBody: '{}', MessageGroupId: 'a', MessageDeduplicationId: '1' };
    await client.send(new SendMessageCommand(send));
    await client.send(new SendMessageCommand(send));
    client.destroy();
    expect(await sqs.depth(fifo)).toEqual({ ready: 1, delayed: 0, inFlight: 0 });
  });
});
