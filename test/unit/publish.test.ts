import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, test } from 'vitest';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import { makeDestinations } from '../../shared/publish/destinations.ts';
import { EventBridgePublisher } from '../../shared/publish/eventbridge.ts';
import { SqsPublisher } from '../../shared/publish/sqs.ts';

type Answer = (input: Record<string, unknown>, name: string) => unknown;

/** A client whose answers the test decides, by a middleware in front of everything else. */
function answering<Client extends SQSClient | EventBridgeClient>(client: Client, answer: Answer): Client {
  (client as SQSClient).middlewareStack.add(
    (_next, context) => async (args) => {
      const output = await answer(args.input as never, String(context['commandName']));
      return { output: output as never, response: {} };
    },
    { step: 'initialize', priority: 'high' },
  );
  return client;
}

const settings = { region: 'eu-central-1', credentials: { accessKeyId: 'a', secretAccessKey: 'b' } };
const live = { signal: new AbortController().signal };
const url = 'https://sqs.eu-central-1.amazonaws.com/1/orders';

function sqs(answer: Answer, options: { url?: string; fifo?: boolean } = {}) {
  const client = answering(new SQSClient(settings), answer);
  return new SqsPublisher({ client, url, fifo: false, source: 'orders-service', ...options });
}

function bus(answer: Answer) {
  const client = answering(new EventBridgeClient(settings), answer);
  return new EventBridgePublisher({ client, bus: 'events', source: 'orders-service' });
}

function message(n: number): OutgoingMessage {
  return {
    id: `0198c0de-0000-7000-8000-00000000000${n}`,
    messageType: 'order.placed',
    payload: `{"n":${n}}`,
    headers: {},
    correlationId: null,
    partitionKey: null,
    replay: 0,
  };
}

const three = <Entry>(publisher: { prepare(message: OutgoingMessage): { entry: Entry } }) =>
  [1, 2, 3].map((n) => publisher.prepare(message(n)).entry);

describe('SQS', () => {
  test('each entry gets what the broker said of it by id, and one that is not mentioned has failed', async () => {
    const publisher = sqs(() => ({
      Successful: [{ Id: '2' }],
      Failed: [{ Id: '0', Code: 'InvalidMessageContents', Message: 'bad', SenderFault: true }],
    }));
    const outcomes = await publisher.send(three(publisher), live);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['rejected', 'failed', 'published']);
    expect(outcomes[1]).toMatchObject({ reason: expect.stringContaining('without mentioning') });
  });

  test('an answer of 200 that says nothing is no success', async () => {
    const publisher = sqs(() => ({}));
    const outcomes = await publisher.send(three(publisher), live);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['failed', 'failed', 'failed']);
  });

  test('a whole call refused for its content is thrown, and of one message alone is its rejection', async () => {
    const publisher = sqs(() => {
      throw Object.assign(new Error('Invalid characters'), {
        name: 'InvalidMessageContents',
        $metadata: { httpStatusCode: 400 },
      });
    });
    await expect(publisher.send(three(publisher), live)).rejects.toThrow('Invalid characters');
    const [first] = three(publisher);
    expect(await publisher.send(first ? [first] : [], live)).toMatchObject([{ kind: 'rejected' }]);
  });

  test('our own abort is an interruption, a time limit is not', async () => {
    const stop = new AbortController();
    const publisher = sqs(() => {
      stop.abort();
      throw Object.assign(new Error('aborted'), { name: 'AbortError' });
    });
    const error = await publisher.send(three(publisher), stop).catch((thrown: unknown) => thrown);
    expect(publisher.classify(error).kind).toBe('interrupted');

    const slow = sqs(() => new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 20)));
    const late = await slow
      .send(three(slow), { signal: AbortSignal.timeout(1) })
      .catch((thrown: unknown) => thrown);
    expect(slow.classify(late).kind).toBe('unavailable');

    const foreign = Object.assign(new Error('aborted by somebody'), { name: 'AbortError' });
    expect(publisher.classify(foreign).kind).toBe('unavailable');
  });

  test('nothing that AWS would refuse as a call reaches the client', async () => {
    let calls = 0;
    const publisher = sqs(() => ++calls);
    const entry = publisher.prepare(message(1)).entry;
    await expect(publisher.send([], live)).rejects.toThrow(RangeError);
    await expect(publisher.send(Array(11).fill(entry), live)).rejects.toThrow('not 11 of');
    const large = publisher.prepare({ ...message(1), payload: `"${'ä'.repeat(300_000)}"` }).entry;
    await expect(publisher.send([large, large], live)).rejects.toThrow(RangeError);
    expect(calls).toBe(0);
  });

  test('a queue set as FIFO whose name says otherwise is refused before anything is sent', () => {
    expect(() => sqs(() => ({}), { fifo: true })).toThrow('is set as FIFO');
    expect(() => sqs(() => ({}), { url: `${url}.fifo` })).toThrow('is set as not FIFO');
  });
});

describe('EventBridge', () => {
  const found: Answer = (_, name) => (name === 'DescribeEventBusCommand' ? { Name: 'events' } : undefined);

  test('only an event id is a success; results are taken by their place', async () => {
    const publisher = bus(
      (input, name) =>
        found(input, name) ?? {
          FailedEntryCount: 0,
          Entries: [{ EventId: '1' }, {}, { ErrorCode: 'MalformedDetail', ErrorMessage: 'bad' }],
        },
    );
    const outcomes = await publisher.send(three(publisher), live);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['published', 'failed', 'rejected']);
  });

  test('an entry that failed passes by itself or not, as its code says', async () => {
    const codes = ['RedactionFailure', 'ThrottlingException', 'InvalidArgument'];
    const publisher = bus(
      (input, name) => found(input, name) ?? { Entries: codes.map((ErrorCode) => ({ ErrorCode })) },
    );
    const outcomes = await publisher.send(three(publisher), live);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['failed', 'unavailable', 'rejected']);
  });

  test("entries that failed by the bus's own fault are an outage, whatever the call's status", async () => {
    const entry = { ErrorCode: 'InternalFailure', ErrorMessage: 'unknown' };
    const publisher = bus(
      (input, name) => found(input, name) ?? { FailedEntryCount: 3, Entries: [entry, entry, entry] },
    );
    const outcomes = await publisher.send(three(publisher), live);
    expect(outcomes.map(({ kind }) => kind)).toEqual(['unavailable', 'unavailable', 'unavailable']);
  });

  test('a bus that does not exist, or may not be looked up, gets nothing: the destination is unavailable', async () => {
    for (const name of ['ResourceNotFoundException', 'AccessDeniedException', 'ValidationException']) {
      let published = 0;
      const publisher = bus((_, command) => {
        if (command === 'PutEventsCommand') return ++published;
        throw Object.assign(new Error('no such bus'), { name, $metadata: { httpStatusCode: 400 } });
      });
      const error = await publisher.send(three(publisher), live).catch((thrown: unknown) => thrown);
      expect(publisher.classify(error)).toMatchObject({ kind: 'unavailable', laneWide: true });
      expect(publisher.classify(error).reason).toContain('EventBridge bus events');
      expect(published).toBe(0);
    }
  });

  test('the bus is looked up once, and again after a look that failed', async () => {
    let looks = 0;
    const publisher = bus((_, command) => {
      if (command === 'PutEventsCommand')
        return { Entries: [{ EventId: '1' }, { EventId: '2' }, { EventId: '3' }] };
      if (++looks === 1) throw new Error('not now');
      return {};
    });
    await expect(publisher.verify(live)).rejects.toThrow();
    await publisher.verify(live);
    await publisher.send(three(publisher), live);
    expect(looks).toBe(2);
  });

  test('a source that EventBridge refuses is refused before anything is sent', () => {
    const client = new EventBridgeClient(settings);
    for (const source of [undefined, '', 'aws.orders', 's'.repeat(257)]) {
      expect(() => new EventBridgePublisher({ client, bus: 'b', source })).toThrow('RELAYBOX_SOURCE');
    }
  });
});

test('destinations become publishers, each of its transport', async () => {
  process.env['AWS_REGION'] ??= 'eu-central-1';
  const destinations = await makeDestinations(
    {
      orders: { type: 'sqs', url, fifo: false },
      ordered: { type: 'sqs', url: `${url}.fifo`, fifo: true },
      events: { type: 'eventbridge', bus: 'events' },
    },
    { source: 'orders-service' },
  );
  expect([...destinations].map(([name, { limits }]) => [name, limits.ordered])).toEqual([
    ['orders', false],
    ['ordered', true],
    ['events', false],
  ]);
});
