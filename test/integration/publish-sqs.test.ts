import { randomUUID } from 'node:crypto';
import {
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SetQueueAttributesCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FaultGate, openGate } from '../../local/faults.ts';
import { type LocalSqs, localAws, startSqs } from '../../local/sqs.ts';
import { type Parcel, packRounds } from '../../shared/delivery/packing.ts';
import { readRecord, type SqsRecord } from '../../shared/message/envelope/read.ts';
import type { SqsEnvelope } from '../../shared/message/envelope/sqs.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import { SqsPublisher, sqsClient } from '../../shared/publish/sqs.ts';
import { judgeSqs } from '../support/aws-rules.ts';

let sqs: LocalSqs;
let gate: FaultGate;
let client: SQSClient;
const live = { signal: new AbortController().signal };

beforeAll(async () => {
  process.env['AWS_REGION'] = localAws.region;
  process.env['AWS_ACCESS_KEY_ID'] = 'local';
  process.env['AWS_SECRET_ACCESS_KEY'] = 'local';
  sqs = await startSqs();
  gate = await openGate(sqs.endpoint);
  client = sqsClient({ endpoint: gate.url });
  judgeSqs(client);
});

afterAll(async () => {
  client.destroy();
  await gate.stop();
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

async function destination(fifo = false) {
  const queue = await sqs.createQueue(`q-${randomUUID()}`, { fifo });
  return { queue, publisher: new SqsPublisher({ client, url: queue.url, fifo, source: 'orders-service' }) };
}

/** Receives as Lambda's poller does. */
async function receive(url: string): Promise<SqsRecord[]> {
  const { Messages = [] } = await client.send(
    new ReceiveMessageCommand({
      QueueUrl: url,
      MaxNumberOfMessages: 10,
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['All'],
    }),
  );
  return Messages.map((received) => ({
    messageId: received.MessageId ?? '',
    body: received.Body ?? '',
    attributes: { MessageGroupId: received.Attributes?.['MessageGroupId'] },
    messageAttributes: Object.fromEntries(
      Object.entries(received.MessageAttributes ?? {}).map(([name, value]) => [
        name,
        { stringValue: value.StringValue },
      ]),
    ),
  }));
}

describe('a message arrives with the identity and content it was sent with', () => {
  test('on a standard queue', async () => {
    const { queue, publisher } = await destination();
    const sent = message({
      payload: '{"n":12345678901234567890,"t":"ä\\ufffe"}',
      headers: { tenant: 'ä', traceparent: '00-1-2-01', 'relaybox-hops': '2', odd: '\u0001\uFFFE' },
      correlationId: 'c',
      partitionKey: 'k\u0001',
    });
    const outcomes = await publisher.send([publisher.prepare(sent).entry], live);
    expect(outcomes).toEqual([{ kind: 'published' }]);
    const [record] = await receive(queue.url);
    expect(record && readRecord(record)).toEqual({
      message: {
        id: sent.id,
        messageType: 'order.placed',
        payload: sent.payload,
        headers: { ...sent.headers, 'relaybox-source': 'orders-service' },
        correlationId: 'c',
        partitionKey: 'k\u0001',
      },
    });
  });

  test('on FIFO: published twice it is there once, and a replay by a person is there again', async () => {
    const { queue, publisher } = await destination(true);
    const sent = message({ partitionKey: 'order-1' });
    for (const replay of [0, 0, 1]) {
      await publisher.send([publisher.prepare({ ...sent, replay }).entry], live);
    }
    expect((await sqs.depth(queue)).ready).toBe(2);
    const [record] = await receive(queue.url);
    expect(record?.attributes?.MessageGroupId).toBe('order-1');
  });
});

describe('packing by bytes, multibyte text and attributes counted', () => {
  const call = 1_048_576;

  /** Two messages of as many bytes together. */
  function two(publisher: SqsPublisher, bytes: number): Parcel<SqsEnvelope>[] {
    const fixed = publisher.prepare(message({ payload: 'ä' })).bytes - 2;
    const halves = [Math.floor(bytes / 2), Math.ceil(bytes / 2)];
    return halves.map((half) => {
      const room = half - fixed;
      const payload = 'ä'.repeat(Math.floor(room / 2)) + 'a'.repeat(room % 2);
      return { ...publisher.prepare(message({ payload })), key: null, alone: false };
    });
  }

  test.each([
    [call - 1, 1],
    [call, 1],
    [call + 1, 2],
  ])('%i bytes are %i calls, and each is taken', async (bytes, calls) => {
    const { queue, publisher } = await destination();
    const parcels = two(publisher, bytes);
    expect(parcels.reduce((sum, parcel) => sum + parcel.bytes, 0)).toBe(bytes);
    const packed = packRounds(parcels, publisher.limits).flat();
    expect(packed).toHaveLength(calls);
    for (const one of packed) {
      const outcomes = await publisher.send(
        one.map(({ entry }) => entry),
        live,
      );
      expect(outcomes.every(({ kind }) => kind === 'published')).toBe(true);
    }
    expect((await sqs.depth(queue)).ready).toBe(2);
  });

  test("our count of bytes is the broker's: one byte more in one call is refused by it", async () => {
    const { queue, publisher } = await destination();
    const entries = two(publisher, call + 1).map(({ entry }, index) => ({
      Id: String(index),
      MessageBody: entry.body,
      MessageAttributes: Object.fromEntries(
        Object.entries(entry.attributes).map(([name, StringValue]) => [
          name,
          { DataType: 'String', StringValue },
        ]),
      ),
    }));
    const unjudged = new SQSClient({ endpoint: sqs.endpoint, region: localAws.region });
    const send = unjudged.send(new SendMessageBatchCommand({ QueueUrl: queue.url, Entries: entries }));
    await expect(send).rejects.toMatchObject({ name: 'BatchRequestTooLong' });
    unjudged.destroy();
  });

  test('25 messages are three calls', async () => {
    const { publisher } = await destination();
    const parcels = Array.from({ length: 25 }, () => ({
      ...publisher.prepare(message()),
      key: null,
      alone: false,
    }));
    expect(
      packRounds(parcels, publisher.limits)
        .flat()
        .map(({ length }) => length),
    ).toEqual([10, 10, 5]);
  });
});

describe('what goes wrong is told apart', () => {
  test('a queue that does not exist', async () => {
    const { publisher } = await destination();
    const gone = new SqsPublisher({
      client,
      url: `${sqs.endpoint}/000000000000/gone`,
      fifo: false,
      source: 's',
    });
    const error = await gone
      .send([publisher.prepare(message()).entry], live)
      .catch((thrown: unknown) => thrown);
    expect(gone.classify(error)).toMatchObject({ kind: 'unavailable', laneWide: true });
  });

  test.each([500, 503, 429])('a status of %i', async (status) => {
    const { publisher } = await destination();
    const takeBack = gate.inject({ fault: { kind: 'status', status } });
    const error = await publisher
      .send([publisher.prepare(message()).entry], live)
      .catch((thrown: unknown) => thrown);
    takeBack();
    expect(publisher.classify(error).kind).toBe('unavailable');
  });

  test('a connection that breaks after the broker has the message: not known, so sent again', async () => {
    const { queue, publisher } = await destination();
    gate.inject({ fault: { kind: 'lost-reply' }, times: 1 });
    const outcomes = await publisher.send([publisher.prepare(message()).entry], live);
    expect(outcomes).toEqual([{ kind: 'published' }]);
    expect((await sqs.depth(queue)).ready).toBe(2);
  });

  test('a broker that is gone', async () => {
    const { publisher } = await destination();
    await gate.down();
    const error = await publisher
      .send([publisher.prepare(message()).entry], live)
      .catch((thrown: unknown) => thrown);
    await gate.up();
    expect(publisher.classify(error)).toMatchObject({ kind: 'unavailable', laneWide: true });
  });

  test('a message too large for this queue costs only itself', async () => {
    const { queue, publisher } = await destination();
    await client.send(
      new SetQueueAttributesCommand({ QueueUrl: queue.url, Attributes: { MaximumMessageSize: '1024' } }),
    );
    const entries = [message(), message({ payload: `"${'x'.repeat(2000)}"` }), message()];
    const outcomes = await publisher.send(
      entries.map((one) => publisher.prepare(one).entry),
      live,
    );
    expect(outcomes.map(({ kind }) => kind)).toEqual(['published', 'rejected', 'published']);
  });
});
