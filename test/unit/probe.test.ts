import { expect, it } from 'vitest';
import { tryLane } from '../../shared/outbox/probe.ts';
import type { BatchOutcome } from '../../shared/outbox/send.ts';
import type { ClaimedOutboxMessage, Probe } from '../../shared/store/outbox-store.ts';
import { claimedMessage } from '../support/messages.ts';

/** A session over an open lane with these due messages; every send publishes, but for the refused. */
function sessionOver(due: readonly ClaimedOutboxMessage[], refused: readonly ClaimedOutboxMessage[] = []) {
  const sent: ClaimedOutboxMessage[] = [];
  return {
    sent,
    async readFor(_: Probe, which: { limit: number; only?: readonly string[]; except?: readonly string[] }) {
      const wanted = due.filter(({ id }) =>
        which.only ? which.only.includes(id) : !which.except?.includes(id),
      );
      return wanted.slice(0, which.limit);
    },
    async sendAndSettle(messages: readonly ClaimedOutboxMessage[]): Promise<BatchOutcome> {
      sent.push(...messages);
      const failed = messages.filter((message) => refused.includes(message));
      const published = messages.filter((message) => !refused.includes(message));
      return {
        published,
        failed: failed.map((message) => ({ message, reason: 'later' })),
        rejected: [],
        unavailable: undefined,
      };
    },
  };
}

const probe = (tried: readonly ClaimedOutboxMessage[]): Probe => ({
  destination: 'orders',
  token: 't',
  failures: 1,
  tried: tried.map(({ id }) => id),
});

it("a key's next message does not pass the one that a probe tried, however many were tried", async () => {
  const tried = Array.from({ length: 12 }, (_, n) => claimedMessage({ partitionKey: `k${n}` }));
  const next = tried.map(({ partitionKey }) => claimedMessage({ partitionKey }));
  const free = claimedMessage();
  const session = sessionOver([...tried, next[11] as ClaimedOutboxMessage, free]);
  expect(await tryLane(session, probe(tried))).toBe('passed');
  expect(session.sent[0]).toBe(free);
  expect(session.sent).not.toContain(next[11]);
});

it("a key's next message is no witness where the broker has just refused the one before it", async () => {
  const suspect = claimedMessage();
  const [first, second] = [1, 2].map(() => claimedMessage({ partitionKey: 'k' }));
  const session = sessionOver(
    [suspect, first as ClaimedOutboxMessage, second as ClaimedOutboxMessage],
    [first as ClaimedOutboxMessage],
  );
  await tryLane(session, probe([suspect]));
  expect(session.sent).toEqual([first, suspect]);
});

it.each([0, 0.3, 0.5, 0.7, 0.99])(
  'a probe begins with any of the messages, but with none whose key has an earlier one (at %d)',
  async (place) => {
    const suspect = claimedMessage();
    const due = ['a', 'b', 'a', null, 'b', 'a'].map((partitionKey) => claimedMessage({ partitionKey }));
    const session = sessionOver([suspect, ...due]);
    expect(await tryLane(session, probe([suspect]), () => place)).toBe('passed');
    for (const key of ['a', 'b']) {
      const ofKey = due.filter(({ partitionKey }) => partitionKey === key);
      const sent = session.sent.filter(({ partitionKey }) => partitionKey === key);
      expect(sent).toEqual(ofKey.slice(0, sent.length));
    }
    expect(session.sent).toContain(due[3]);
  },
);
