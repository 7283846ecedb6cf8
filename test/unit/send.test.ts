import { describe, expect, it } from 'vitest';
import type { Failure } from '../../shared/delivery/failure.ts';
import { Rejected } from '../../shared/message/errors.ts';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import { type SendOptions, sendBatch } from '../../shared/outbox/send.ts';
import type { Publisher, SendOutcome } from '../../shared/publish/publisher.ts';
import { claimedMessage } from '../support/messages.ts';

class Outage extends Error {}
class BadCall extends Error {}

/** A broker that answers as told; `calls` keeps what it was sent. */
function broker(answer: (call: readonly OutgoingMessage[]) => readonly SendOutcome[]) {
  const calls: (readonly OutgoingMessage[])[] = [];
  const publisher: Publisher<OutgoingMessage> = {
    limits: { entries: 10, callBytes: 1_000_000, ordered: true },
    prepare(message) {
      if (message.payload === 'too large') throw new Rejected('payload: 2,000,000 bytes, at most 1,048,576');
      return { entry: message, bytes: 100 };
    },
    async send(entries) {
      calls.push(entries);
      await new Promise((resolve) => setTimeout(resolve, 2));
      return answer(entries);
    },
    classify: (error): Failure =>
      error instanceof Outage
        ? { kind: 'unavailable', reason: '503' }
        : { kind: 'failed', reason: String(error) },
  };
  return { publisher: publisher as Publisher, calls };
}

const published: SendOutcome = { kind: 'published' };
const unwell: SendOutcome = { kind: 'unavailable', reason: 'InternalFailure' };
const allPublished = (call: readonly OutgoingMessage[]) => call.map(() => published);
const options = (changes: Partial<SendOptions> = {}): SendOptions => ({
  parallelism: 2,
  onFailedKey: 'block',
  maxHops: 64,
  budgetMs: () => 1_000,
  evidenceMs: 0,
  signal: new AbortController().signal,
  ...changes,
});
const messages = (count: number) => Array.from({ length: count }, () => claimedMessage());

describe('an outage', () => {
  it('charges no message, and is told after two silent calls and what was under way, not after all ten', async () => {
    const { publisher, calls } = broker(() => {
      throw new Outage();
    });
    const outcome = await sendBatch(messages(100), publisher, options());
    expect(outcome).toMatchObject({
      published: [],
      failed: [],
      rejected: [],
      unavailable: { reason: '503' },
    });
    expect(calls.length).toBeLessThanOrEqual(3);
  });

  it('that begins in mid-batch charges no message either', async () => {
    let call = 0;
    const { publisher } = broker((entries) => {
      if (++call > 3) throw new Outage();
      return allPublished(entries);
    });
    const outcome = await sendBatch(messages(100), publisher, options());
    expect(outcome.published).toHaveLength(30);
    expect(outcome.failed).toEqual([]);
    expect(outcome.unavailable).toBeDefined();
  });

  it('that answers 200 and fails every entry charges no message either, and is told as soon', async () => {
    const { publisher, calls } = broker((entries) => entries.map(() => unwell));
    const outcome = await sendBatch(messages(100), publisher, options());
    expect(outcome).toMatchObject({ published: [], failed: [], rejected: [] });
    expect(outcome.unavailable).toMatchObject({ reason: 'InternalFailure' });
    expect(calls.length).toBeLessThanOrEqual(3);
  });

  it('of the whole lane, such as throttling, is not blamed on a message though others passed', async () => {
    const { publisher } = broker((entries) =>
      entries.map((_, index) =>
        index === 0 ? { kind: 'unavailable', reason: 'throttled', laneWide: true } : published,
      ),
    );
    const outcome = await sendBatch(messages(10), publisher, options());
    expect(outcome.published).toHaveLength(9);
    expect(outcome.failed).toEqual([]);
    expect(outcome.unavailable).toEqual({ reason: 'throttled', tried: [] });
  });
});

describe('a message that makes the broker answer 500', () => {
  it('costs only itself: its neighbours are sent again without it', async () => {
    const batch = messages(30);
    const poison = batch[14];
    const { publisher } = broker((entries) => {
      if (entries.some((entry) => entry.id === poison?.id)) throw new Outage();
      return allPublished(entries);
    });
    const outcome = await sendBatch(batch, publisher, options());
    expect(outcome.published).toHaveLength(29);
    expect(outcome.failed.map((f) => f.message.id)).toEqual([poison?.id]);
    expect(outcome.unavailable).toBeUndefined();
  });

  it('rides alone once it has failed, and is charged only because a later send was answered', async () => {
    const poison = claimedMessage({ retryCount: 1 });
    const { publisher, calls } = broker((entries) => {
      if (entries.some((entry) => entry.id === poison.id)) throw new Outage();
      return allPublished(entries);
    });
    const outcome = await sendBatch([...messages(12), poison], publisher, options({ parallelism: 1 }));
    expect(calls.map((call) => call.length)).toEqual([1, 10, 2]);
    expect(outcome.failed.map((f) => f.message)).toEqual([poison]);
    expect(outcome.published).toHaveLength(12);

    const only = await sendBatch([poison], publisher, options());
    expect(only.failed).toEqual([]);
    expect(only.unavailable?.tried).toEqual([poison.id]);
  });
});

describe('an entry that fails by the broker’s own fault', () => {
  it('is sent again alone, and passes where the fault has passed', async () => {
    const batch = messages(10);
    let calls = 0;
    const { publisher } = broker((entries) => {
      calls += 1;
      return entries.map((_, index) => (calls === 1 && index === 3 ? unwell : published));
    });
    const outcome = await sendBatch(batch, publisher, options());
    expect(outcome.published).toHaveLength(10);
    expect([outcome.failed, outcome.unavailable]).toEqual([[], undefined]);
  });

  it('is charged where it fails again alone and others, sent after that, are answered', async () => {
    const batch = messages(30);
    const [poison, passing] = [batch[3], batch[14]];
    let failures = 0;
    const { publisher } = broker((entries) =>
      entries.map((entry) =>
        entry === poison || (entry === passing && ++failures === 1) ? unwell : published,
      ),
    );
    const outcome = await sendBatch(batch, publisher, options());
    expect(outcome.published).toHaveLength(29);
    expect(outcome.failed.map(({ message }) => message)).toEqual([poison]);
    expect(outcome.unavailable).toBeUndefined();
  });

  it('rides alone and first once it has failed, and is charged', async () => {
    const poison = claimedMessage({ retryCount: 1 });
    const { publisher } = broker((entries) =>
      entries.map((entry) => (entry === poison ? unwell : published)),
    );
    const outcome = await sendBatch([...messages(12), poison], publisher, options({ parallelism: 1 }));
    expect(outcome.failed.map(({ message }) => message)).toEqual([poison]);
    expect(outcome.published).toHaveLength(12);
    expect(outcome.unavailable).toBeUndefined();
  });
});

describe('a call that the broker refuses as a whole', () => {
  it('is sent again one by one, and only the refused message fails', async () => {
    const batch = messages(10);
    const bad = batch[3];
    const { publisher } = broker((entries) => {
      if (entries.some((entry) => entry.id === bad?.id)) throw new BadCall('413');
      return allPublished(entries);
    });
    const outcome = await sendBatch(batch, publisher, options());
    expect(outcome.published).toHaveLength(9);
    expect(outcome.failed.map((f) => f.message)).toEqual([bad]);
    expect(outcome.unavailable).toBeUndefined();
  });
});

describe('results', () => {
  it('an entry that the broker did not mention has failed', async () => {
    const batch = messages(3);
    const { publisher } = broker(() => [published, published]);
    const outcome = await sendBatch(batch, publisher, options());
    expect(outcome.failed).toEqual([
      { message: batch[2], reason: expect.stringContaining('did not mention') },
    ]);
  });

  it('what the transport can never carry is rejected before the call, and its batch goes', async () => {
    const large = claimedMessage({ payload: 'too large' });
    const { publisher, calls } = broker(allPublished);
    const outcome = await sendBatch([...messages(3), large], publisher, options());
    expect(outcome.rejected).toEqual([{ message: large, reason: expect.stringContaining('1,048,576') }]);
    expect(outcome.published).toHaveLength(3);
    expect(calls.flat()).not.toContain(large);
  });

  it('a message caused by messages 65 times over is rejected as a loop', async () => {
    const looping = claimedMessage({ headers: { 'relaybox-hops': '65' } });
    const { publisher } = broker(allPublished);
    const outcome = await sendBatch([looping], publisher, options());
    expect(outcome.rejected[0]?.reason).toContain('loop');
  });
});

describe('order per key', () => {
  const run = [1, 2, 3].map((n) => claimedMessage({ partitionKey: 'k', payload: `${n}` }));

  it('a run of a key goes call by call, in order', async () => {
    const { publisher, calls } = broker(allPublished);
    const outcome = await sendBatch(run, publisher, options());
    expect(calls.map((call) => call.map((m) => m.payload))).toEqual([['1'], ['2'], ['3']]);
    expect(outcome.published).toEqual(run);
  });

  it.each<SendOutcome>([
    { kind: 'failed', reason: 'later' },
    { kind: 'unavailable', reason: '500' },
    { kind: 'interrupted', reason: 'stop' },
  ])('a run is cut at the first message that is not published ($kind)', async (first) => {
    const { publisher, calls } = broker((call) => call.map((m) => (m.payload === '1' ? first : published)));
    await sendBatch([...run, ...messages(3)], publisher, options());
    expect(calls.flat().map((m) => m.payload)).not.toContain('2');
  });

  it.each(['block', 'skip'] as const)(
    'behind a rejected message the key follows the policy (%s)',
    async (onFailedKey) => {
      const head = claimedMessage({ partitionKey: 'k', payload: 'too large' });
      const { publisher } = broker(allPublished);
      const outcome = await sendBatch([head, ...run], publisher, options({ onFailedKey }));
      expect(outcome.published).toEqual(onFailedKey === 'skip' ? run : []);
    },
  );
});

describe('a publisher that cannot prepare one message', () => {
  it('fails that message, and what its key has behind it waits, while the others are sent', async () => {
    const { publisher } = broker(allPublished);
    const faulty: Publisher = {
      ...publisher,
      prepare(message) {
        if (message.payload === 'odd') throw new RangeError('Maximum call stack size exceeded');
        return publisher.prepare(message);
      },
    };
    const odd = claimedMessage({ partitionKey: 'k', payload: 'odd' });
    const others = messages(2);
    const batch = [odd, claimedMessage({ partitionKey: 'k' }), ...others];
    const outcome = await sendBatch(batch, faulty, options());
    expect(outcome.published).toEqual(others);
    expect(outcome.failed).toEqual([
      { message: odd, reason: expect.stringContaining('Maximum call stack size exceeded') },
    ]);
  });
});

describe('time', () => {
  it('no call begins when nothing is left of the lease or the invocation', async () => {
    const { publisher, calls } = broker(allPublished);
    for (const left of [0, -5]) {
      const outcome = await sendBatch(messages(3), publisher, options({ budgetMs: () => left }));
      expect(outcome).toEqual({ published: [], failed: [], rejected: [], unavailable: undefined });
    }
    expect(calls).toEqual([]);
  });

  it('a publisher that ignores its signal is left behind when the time is up', async () => {
    const { publisher } = broker(allPublished);
    const stuck: Publisher = { ...publisher, send: () => new Promise(() => undefined) };
    const outcome = await sendBatch(messages(1), stuck, options({ budgetMs: () => 30 }));
    expect(outcome.unavailable?.reason).toContain('no answer within 30 ms');
    expect(outcome.failed).toEqual([]);
  });

  it('a call that was cut off since the time was up is no evidence of anything', async () => {
    const { publisher } = broker(allPublished);
    const stuck: Publisher = { ...publisher, send: () => new Promise(() => undefined) };
    for (const count of [1, 5]) {
      const cut = options({ budgetMs: () => 30, evidenceMs: 1_000 });
      const outcome = await sendBatch(messages(count), stuck, cut);
      expect(outcome).toEqual({ published: [], failed: [], rejected: [], unavailable: undefined });
    }
  });

  it('an abort in mid-call decides nothing about the messages', async () => {
    const { publisher } = broker(allPublished);
    const stuck: Publisher = { ...publisher, send: () => new Promise(() => undefined) };
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 20);
    const outcome = await sendBatch(messages(5), stuck, options({ signal: stop.signal }));
    expect(outcome).toEqual({ published: [], failed: [], rejected: [], unavailable: undefined });
  });
});
