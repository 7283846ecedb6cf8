import type { ClaimedOutboxMessage, Probe } from '../store/outbox-store.ts';
import { decidedOf, type LaneSession } from './lane.ts';
import type { BatchOutcome } from './send.ts';

/** Messages that one probe gives another turn, and witnesses it calls. */
const SUSPECTS = 8;
/** Messages, of all buckets, among which a probe chooses. */
const CHOICE = 64;

/** How a probe ended; `untried` where no message could be had, or there was no time to send one. */
export type ProbeVerdict = 'passed' | 'untried' | NonNullable<BatchOutcome['unavailable']>;

/**
 * Tries an open lane with one message that no earlier probe has tried: any, since what a broker chokes on was often added
 * together, and would stand in front one after the other, more of it than a lane remembers. Where it passes, those that were tried in vain
 * have another turn, each alone: one that fails again, while others pass, is what failed, not the destination.
 * A long outage would otherwise charge everything that its probes happened to take.
 */
export async function tryLane(
  session: Pick<LaneSession, 'readFor' | 'sendAndSettle'>,
  probe: Probe,
  random: () => number = Math.random,
): Promise<ProbeVerdict> {
  const { tried } = probe;
  const before = tried.length > 0 ? await session.readFor(probe, { only: tried, limit: tried.length }) : [];
  const suspects = before.slice(0, SUSPECTS);
  const keys = new Set(before.flatMap(({ partitionKey }) => partitionKey ?? []));
  // A key's next message must not pass the one that was tried.
  const others = (await session.readFor(probe, { except: tried, limit: CHOICE })).filter(
    ({ partitionKey }) => partitionKey === null || !keys.has(partitionKey),
  );
  const [message = suspects[0], ...more] = someOf(others, random);
  if (!message) return 'untried';
  const answered = performance.now();
  const first = await session.sendAndSettle([message]);
  if (first.unavailable) return first.unavailable;
  if (decidedOf(first) === 0) return 'untried';
  const again = suspects.filter((suspect) => suspect !== message);
  if (again.length === 0) return 'passed';
  const ids = new Set(again.map(({ id }) => id));
  // Nor one that was refused just now.
  const held = first.published.includes(message) ? null : message.partitionKey;
  const witnesses = more.filter(({ partitionKey }) => partitionKey === null || partitionKey !== held);
  const second = await session.sendAndSettle(
    [...again, ...witnesses],
    { suspects: ids, answered, parallelism: 1 },
    (outcome) => (witnesses.length > 0 ? outcome : withoutWitness(outcome, again)),
  );
  return second.unavailable ?? 'passed';
}

/** Some of the messages, from a place by chance on, and then from the front. None passes an earlier one of its key. */
function someOf(
  messages: readonly ClaimedOutboxMessage[],
  random: () => number,
): readonly ClaimedOutboxMessage[] {
  const heads = messages.filter(
    ({ partitionKey }, place) =>
      partitionKey === null || messages.findIndex((one) => one.partitionKey === partitionKey) === place,
  );
  const first = heads[Math.floor(random() * heads.length)];
  if (first === undefined) return [];
  const front = messages.slice(0, messages.indexOf(first));
  const passed = new Set(front.map(({ partitionKey }) => partitionKey));
  const behind = messages
    .slice(front.length)
    .filter(({ partitionKey }) => partitionKey === null || !passed.has(partitionKey));
  return [...behind, ...front].slice(0, SUSPECTS);
}

/**
 * With nothing left to send as a witness, a single suspect that failed before and after another passed is charged all
 * the same: a lane with little traffic would never be rid of it.
 */
function withoutWitness(outcome: BatchOutcome, suspects: readonly ClaimedOutboxMessage[]): BatchOutcome {
  const [id, ...more] = outcome.unavailable?.tried ?? [];
  const message = suspects.find((suspect) => suspect.id === id);
  if (!outcome.unavailable || !message || more.length > 0) return outcome;
  const reason = `${outcome.unavailable.reason} (before and after another passed)`;
  return { ...outcome, failed: [...outcome.failed, { message, reason }], unavailable: undefined };
}
