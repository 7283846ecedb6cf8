import { randomUUID } from 'node:crypto';
import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AcceptedEvent, type LocalEventBridge, startEventBridge } from '../../local/eventbridge.ts';
import { type LocalQueue, type LocalSqs, localAws, startSqs } from '../../local/sqs.ts';
import { eventBridgeBytes } from '../../shared/message/envelope/eventbridge.ts';
import { readRecord } from '../../shared/message/envelope/read.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import { EventBridgePublisher, eventBridgeClient } from '../../shared/publish/eventbridge.ts';

let sqs: LocalSqs;
let bridge: LocalEventBridge;
let queue: LocalQueue;
let client: EventBridgeClient;
const events: AcceptedEvent[] = [];
const live = { signal: new AbortController().signal };

beforeAll(async () => {
  process.env['AWS_REGION'] = localAws.region;
  process.env['AWS_ACCESS_KEY_ID'] = 'local';
  process.env['AWS_SECRET_ACCESS_KEY'] = 'local';
  sqs = await startSqs();
  queue = await sqs.createQueue('events');
  bridge = await startEventBridge({
    buses: ['events'],
    rules: [{ bus: 'events', name: 'all', pattern: { source: ['orders-service'] }, queue }],
    sqsEndpoint: sqs.endpoint,
    onEvent: (event) => events.push(event),
  });
  client = eventBridgeClient({ endpoint: bridge.endpoint });
});

afterAll(async () => {
  client.destroy();
  await bridge.stop();
  await sqs.stop();
});

function message(fields: Partial<OutgoingMessage> = {}): OutgoingMessage {
  return {
    id: randomUUID(),
    messageType: 'order.placed',
    payload: '{"orderId":"1"}',
    headers: {},
    correlationId: null,
    partitionKey: null,
    replay: 0,
    ...fields,
  };
}

const to = (bus: string) => new EventBridgePublisher({ client, bus, source: 'orders-service' });

test('a message published twice arrives through a rule with one identity and its exact payload', async () => {
  const publisher = to('events');
  const sent = message({
    payload: '{"n":12345678901234567890 , "t":"ä\uFFFE"}',
    headers: { tenant: 'ä' },
    partitionKey: 'k',
  });
  const { entry } = publisher.prepare(sent);
  for (const _ of [1, 2]) expect(await publisher.send([entry], live)).toEqual([{ kind: 'published' }]);
  const read = (await sqs.bodies(queue)).map((body) => readRecord({ messageId: randomUUID(), body }));
  expect(read).toHaveLength(2);
  for (const one of read) {
    expect(one).toEqual({
      message: {
        id: sent.id,
        messageType: 'order.placed',
        payload: '{"n":12345678901234567890 , "t":"ä\\ufffe"}',
        headers: { tenant: 'ä', 'relaybox-source': 'orders-service' },
        correlationId: null,
        partitionKey: 'k',
      },
    });
  }
});

test('a bus that does not exist, to which EventBridge would answer success, gets nothing', async () => {
  const publisher = to('no-such-bus');
  const before = events.length;
  const error = await publisher
    .send([publisher.prepare(message()).entry], live)
    .catch((thrown: unknown) => thrown);
  expect(publisher.classify(error)).toMatchObject({ kind: 'unavailable', laneWide: true });
  expect(publisher.classify(error).reason).toContain('no-such-bus');
  expect(events).toHaveLength(before);
});

test("our count of bytes is the bus's, and a message of just our limit is taken", async () => {
  const publisher = to('events');
  const fixed = publisher.prepare(message({ payload: '""' })).bytes;
  const largest = publisher.prepare(
    message({ payload: `"${'ä'.repeat(Math.floor((eventBridgeBytes - fixed) / 2))}"` }),
  );
  expect(largest.bytes).toBeGreaterThan(eventBridgeBytes - 2);
  expect(await publisher.send([largest.entry], live)).toEqual([{ kind: 'published' }]);
  expect(events.at(-1)?.bytes).toBe(largest.bytes);
});

test('ten in one call, each with its own outcome', async () => {
  const publisher = to('events');
  const entries = Array.from({ length: 10 }, () => publisher.prepare(message()).entry);
  const outcomes = await publisher.send(
    entries.map((entry, index) => (index === 3 ? { ...entry, detail: 'no JSON' } : entry)),
    live,
  );
  expect(outcomes.map(({ kind }) => kind)).toEqual(
    entries.map((_, index) => (index === 3 ? 'rejected' : 'published')),
  );
});
