import { ReceiveMessageCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type LocalSqs, startSqs } from '../../local/sqs.ts';
import { toRecord } from '../../local/triggers/queue.ts';
import { silent } from '../../shared/delivery/telemetry.ts';
import { delayRecords } from '../../shared/publish/visibility.ts';

let sqs: LocalSqs;
let client: SQSClient;

beforeAll(async () => {
  vi.stubEnv('AWS_REGION', 'us-east-1');
  vi.stubEnv('AWS_ACCESS_KEY_ID', 'test');
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'test');
  sqs = await startSqs();
  client = new SQSClient({ endpoint: sqs.endpoint });
});
afterAll(async () => {
  client.destroy();
  await sqs.stop();
  vi.unstubAllEnvs();
});

/** A record that was received from a queue of its own. */
async function received(name: string) {
  const queue = await sqs.createQueue(name, { visibilitySeconds: 60 });
  await client.send(new SendMessageCommand({ QueueUrl: queue.url, MessageBody: '{}' }));
  const receive = async () =>
    (await client.send(new ReceiveMessageCommand({ QueueUrl: queue.url }))).Messages ?? [];
  const [record] = (await receive()).map((message) => toRecord(message, queue));
  if (record === undefined) throw new Error('nothing was received');
  return { record, receive };
}

it('records whose call fails come at the queue’s own time, and only of them it is said', async () => {
  const { record, receive } = await received('mixed');
  const { eventSourceARN: _, ...unnamed } = record;
  const warn = vi.fn();
  await delayRecords(
    [
      { record: unnamed, seconds: 0 },
      { record, seconds: 0 },
    ],
    { endpoint: sqs.endpoint, limitMs: 10_000, logger: { ...silent.logger, warn } },
  );
  expect(warn.mock.calls.map(([, about]) => about.records)).toEqual([1]);
  expect(await receive()).toHaveLength(1);
});

it('a host that sets no end leaves time for it', async () => {
  const { record, receive } = await received('endless');
  const options = { endpoint: sqs.endpoint, limitMs: Number.POSITIVE_INFINITY, logger: silent.logger };
  await delayRecords([{ record, seconds: 0 }], options);
  expect(await receive()).toHaveLength(1);
});
