import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { SQSRecord } from 'aws-lambda';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Fault, type FaultGate, openGate } from '../../local/faults.ts';
import { FunctionHost } from '../../local/host.ts';
import { type LocalQueue, type LocalSqs, startSqs } from '../../local/sqs.ts';
import { QueueTrigger, toRecord } from '../../local/triggers/queue.ts';
import { readSettings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import { sqsConsumerFor } from '../../shared/lambda/sqs-consumer.ts';
import { RetryAfter } from '../../shared/message/errors.ts';
import { engine } from '../support/engine/engine.ts';
import { lambdaEngine } from '../support/engine/lambda.ts';
import { until } from '../support/until.ts';

const db = await engine.createDatabase();
const log: string[] = [];
const changes: { QueueUrl: string; Entries: { VisibilityTimeout: number }[] }[] = [];
let sqs: LocalSqs;
let gate: FaultGate;
let client: SQSClient;
let stopWatching: () => void;

beforeAll(async () => {
  vi.stubEnv('AWS_REGION', 'us-east-1');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  sqs = await startSqs();
  gate = await openGate(sqs.endpoint);
  client = new SQSClient({ endpoint: sqs.endpoint });
});
beforeEach(async () => {
  await db.clear();
  for (const stream of [process.stdout, process.stderr]) {
    vi.spyOn(stream, 'write').mockImplementation((line) => log.push(String(line)) > 0);
  }
  watch();
});
afterEach(async () => {
  stopWatching();
  vi.restoreAllMocks();
  await closeConnections();
});
afterAll(async () => {
  vi.unstubAllEnvs();
  client.destroy();
  await gate.stop();
  await sqs.stop();
  await db.drop();
});

/** Notes what SQS is told, and lets that go wrong. */
function watch(fault: Fault = { kind: 'delay', ms: 0 }): void {
  stopWatching?.();
  changes.length = 0;
  log.length = 0;
  stopWatching = gate.inject({
    fault,
    match: ({ target }) => target.endsWith('ChangeMessageVisibilityBatch'),
    onHit: ({ body }) => changes.push(JSON.parse(body)),
  });
}

const names = (
  (made = 0) =>
  () =>
    `emails-${++made}`
)();

async function send(queue: LocalQueue, ...ids: string[]): Promise<void> {
  const attribute = (StringValue: string) => ({ DataType: 'String', StringValue });
  for (const id of ids) {
    await client.send(
      new SendMessageCommand({
        QueueUrl: queue.url,
        MessageBody: '{}',
        MessageAttributes: {
          'relaybox-id': attribute(id),
          'relaybox-type': attribute('order.placed'),
        },
        ...(queue.name.endsWith('.fifo') && { MessageGroupId: id, MessageDeduplicationId: id }),
      }),
    );
  }
}

/** What is visible now, as a trigger would hand it over. */
async function receive(queue: LocalQueue): Promise<SQSRecord[]> {
  const records: SQSRecord[] = [];
  for (;;) {
    const { Messages: messages = [] } = await client.send(
      new ReceiveMessageCommand({
        QueueUrl: queue.url,
        MaxNumberOfMessages: 10,
        MessageAttributeNames: ['All'],
        MessageSystemAttributeNames: ['All'],
      }),
    );
    if (messages.length === 0) return records;
    records.push(...messages.map((message) => toRecord(message, queue)));
  }
}

const idOf = (record: SQSRecord) => record.messageAttributes['relaybox-id']?.stringValue ?? '';
const visible = async (queue: LocalQueue) => (await receive(queue)).map(idOf).sort();

/** So many messages of the queue, in the order in which they become visible. */
async function seen(queue: LocalQueue, count: number): Promise<string[]> {
  const ids: string[] = [];
  return await until(
    async () => {
      ids.push(...(await receive(queue)).map(idOf));
      return ids;
    },
    (list) => list.length >= count,
  );
}

const settings = () =>
  readSettings({
    RELAYBOX_DATABASE_URL: db.url,
    AWS_ENDPOINT_URL_SQS: gate.url,
    RELAYBOX_INBOX_SOURCE: 'shop',
  });
const context = (ms = 20_000) => {
  const end = Date.now() + ms;
  return { getRemainingTimeInMillis: () => end - Date.now() };
};

/** A consumer whose handler wants each message again after the seconds that are given for its id. */
const consumerOf = (seconds: Readonly<Record<string, number>>) =>
  sqsConsumerFor(lambdaEngine)({ consumer: 'emails', settings: settings() }, async ({ id }, { tx }) => {
    await db.effects.write(tx, id);
    const wait = seconds[id];
    if (wait !== undefined) throw new RetryAfter(wait);
  });
const answer = (...records: SQSRecord[]) => ({
  batchItemFailures: records.map(({ messageId }) => ({ itemIdentifier: messageId })),
});

describe('RetryAfter in an sqsConsumer chooses when the message comes again', () => {
  it('sooner than the queue’s own time, each by itself', async () => {
    const queue = await sqs.createQueue(names(), { visibilitySeconds: 60 });
    await send(queue, 'last', 'soon', 'at once', 'fine');
    const Records = await receive(queue);
    const [last, soon, atOnce] = Records as [SQSRecord, SQSRecord, SQSRecord];
    const began = performance.now();
    const handler = consumerOf({ last: 3, soon: 0.7, 'at once': 0 });
    expect(await handler({ Records }, context())).toEqual(answer(last, soon, atOnce));
    expect(await db.effects.all()).toEqual(['fine']);
    expect(await seen(queue, 3)).toEqual(['at once', 'soon', 'last']);
    expect(performance.now() - began).toBeGreaterThan(2_900);
  });

  it('later than the queue’s own time', async () => {
    const queue = await sqs.createQueue(names(), { visibilitySeconds: 2 });
    await send(queue, 'a');
    await consumerOf({ a: 4 })({ Records: await receive(queue) }, context());
    await sleep(2_500);
    expect(await receive(queue)).toEqual([]);
    expect(await seen(queue, 1)).toEqual(['a']);
  });

  it('from when it was thrown, not from the end of the batch', async () => {
    const queue = await sqs.createQueue(names());
    await send(queue, 'a');
    await send(queue, 'slow');
    const thrown = Promise.withResolvers<void>();
    const handler = sqsConsumerFor(lambdaEngine)(
      { consumer: 'emails', settings: settings(), parallelism: 2 },
      async ({ id }) => {
        if (id === 'slow') {
          await thrown.promise;
          // It is caught, and timed, in the same turn.
          await sleep(3_100);
          return;
        }
        thrown.resolve();
        throw new RetryAfter(10);
      },
    );
    await handler({ Records: await receive(queue) }, context());
    const [seconds] = changes.flatMap(({ Entries }) => Entries.map((entry) => entry.VisibilityTimeout));
    expect(seconds).toBeLessThanOrEqual(7);
  });

  it('with one call for ten of a batch, and none where nobody asks for it', async () => {
    const queue = await sqs.createQueue(names());
    const ids = Array.from({ length: 13 }, (_, index) => `m${index}`);
    await send(queue, ...ids);
    const Records = await receive(queue);
    const handler = consumerOf(Object.fromEntries(ids.slice(0, 12).map((id) => [id, 100])));
    expect((await handler({ Records }, context())).batchItemFailures).toHaveLength(12);
    expect(changes.map(({ Entries }) => Entries.length).sort()).toEqual([10, 2]);
    expect(changes[0]?.QueueUrl).toBe(`${gate.url}/000000000000/${queue.name}`);
    changes.length = 0;
    const failing = sqsConsumerFor(lambdaEngine)({ consumer: 'other', settings: settings() }, () => {
      throw new Error('no');
    });
    expect(await failing({ Records: Records.slice(0, 1) }, context())).toEqual(
      answer(Records[0] as SQSRecord),
    );
    expect(changes).toEqual([]);
  });

  it('up to eleven hours and forty minutes: SQS refuses what is more than twelve hours after the receipt', async () => {
    const queue = await sqs.createQueue(names());
    await send(queue, 'a');
    await consumerOf({ a: 86_400 })({ Records: await receive(queue) }, context());
    expect(changes.map(({ Entries }) => Entries[0]?.VisibilityTimeout)).toEqual([42_000]);
  });
});

describe('on a FIFO queue', () => {
  it('the rest of the group in the batch waits for the same time, unbegun; other groups go on', async () => {
    const queue = await sqs.createQueue(names(), { fifo: true, visibilitySeconds: 60 });
    await send(queue, 'a1', 'a2', 'b1');
    // The emulator hands over one message of a group at a time, where SQS hands over all that fit.
    const Records = (await receive(queue)).map((record) => {
      const attributes = { ...record.attributes, MessageGroupId: idOf(record).slice(0, 1) };
      return { ...record, attributes };
    });
    const [first, second] = Records as [SQSRecord, SQSRecord];
    expect(await consumerOf({ a1: 1 })({ Records }, context())).toEqual(answer(first, second));
    expect(await db.effects.all()).toEqual(['b1']);
    expect(await visible(queue)).toEqual([]);
    expect((await seen(queue, 2)).sort()).toEqual(['a1', 'a2']);
  });

  it('the group’s messages that are still in the queue wait with it', async () => {
    const queue = await sqs.createQueue(names(), { fifo: true, visibilitySeconds: 2 });
    const group = { MessageBody: 'second', MessageGroupId: 'a', MessageDeduplicationId: 'second' };
    await send(queue, 'a');
    await client.send(new SendMessageCommand({ QueueUrl: queue.url, ...group }));
    const [head] = await receive(queue);
    await consumerOf({ a: 4 })({ Records: [head] }, context());
    await sleep(2_500);
    expect(await receive(queue)).toEqual([]);
    expect(await seen(queue, 1)).toEqual(['a']);
  });
});

describe('where the time can’t be set', () => {
  it.each<[string, Fault]>([
    ['SQS can’t be reached', { kind: 'reset' }],
    ['SQS refuses it', { kind: 'status', status: 400 }],
    ['SQS refuses each entry', { kind: 'entries' }],
  ])('%s: the batch is answered, and the message comes at the queue’s own time', async (_, fault) => {
    watch(fault);
    const queue = await sqs.createQueue(names(), { visibilitySeconds: 1 });
    await send(queue, 'a');
    const Records = await receive(queue);
    expect(await consumerOf({ a: 60 })({ Records }, context())).toEqual(answer(...Records));
    expect(changes.length).toBeGreaterThan(0);
    expect(log.join('')).toMatch(/at the queue’s own time/);
    expect(await seen(queue, 1)).toEqual(['a']);
  });

  it('SQS doesn’t answer: the invocation ends in time all the same', async () => {
    watch({ kind: 'delay', ms: 15_000 });
    const queue = await sqs.createQueue(names());
    await send(queue, 'a');
    const Records = await receive(queue);
    const began = performance.now();
    expect(await consumerOf({ a: 60 })({ Records }, context(5_000))).toEqual(answer(...Records));
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(changes).not.toEqual([]);
    expect(log.join('')).toMatch(/TimeoutError/);
  });

  it('a record that names no queue is reported like any other', async () => {
    const queue = await sqs.createQueue(names());
    await send(queue, 'a');
    const [record] = (await receive(queue)) as [SQSRecord];
    const { eventSourceARN: _, ...unnamed } = record;
    expect(await consumerOf({ a: 60 })({ Records: [unnamed] }, context())).toEqual(answer(record));
    expect(log.join('')).toMatch(/eventSourceARN/);
  });
});

describe('on a laptop', () => {
  it('a function on its local trigger gets the message when its handler said', async () => {
    const queue = await sqs.createQueue(names(), { visibilitySeconds: 60 });
    const host = new FunctionHost();
    await host.add({
      name: 'emails',
      entry: fileURLToPath(new URL('./fixtures/impatient-function.ts', import.meta.url)),
      env: { RELAYBOX_DATABASE_URL: db.url, AWS_ENDPOINT_URL_SQS: sqs.endpoint },
      timeoutMs: 20_000,
    });
    const attempts: { at: number; delivered: boolean }[] = [];
    const onDelivery = (_: SQSRecord, delivered: boolean) =>
      attempts.push({ at: performance.now(), delivered });
    await send(queue, 'a');
    const where = { host, functionName: 'emails', queue, endpoint: sqs.endpoint };
    const trigger = new QueueTrigger({ ...where, onDelivery });
    await until(
      () => attempts,
      (list) => list.length === 2,
    );
    await trigger.stop();
    await host.stop();
    expect(attempts.map(({ delivered }) => delivered)).toEqual([false, true]);
    const [first, second] = attempts.map(({ at }) => at) as [number, number];
    expect(second - first).toBeGreaterThan(900);
    expect(await db.effects.all()).toEqual(['a']);
  });
});
