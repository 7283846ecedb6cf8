import type { ClaimedOutboxMessage, Probe } from '../store/outbox-store.ts';
import { decidedOf, type LaneSession } from './lane.ts';
import type { BatchOutcome } from './send.ts';

/** Messages that one probe gives another turn, and witnesses it calls. */
const SUSPECTS = 8;

/** How a probe ended; `untried` where no message could be had, or there was no time to send one. */
export type ProbeVerdict = 'passed' | 'untried' | NonNullable<BatchOutcome['unavailable']>;

/**
 * Tries an open lane with one message that no earlier probe has tried. Where it passes, those that were tried in vain
 * have another turn, each alone: one that fails again, while others pass, is what failed, not the destination.
 * A long outage would otherwise charge everything that its probes happened to take.
 */
export async function tryLane(
  session: Pick<LaneSession, 'readFor' | 'sendAndSettle'>,
  probe: Probe,
): Promise<ProbeVerdict> {
  const { tried } = probe;
  const before = tried.length > 0 ? await session.readFor(probe, { only: tried, limit: tried.length }) : [];
  const suspects = before.slice(0, SUSPECTS);
  const keys = new Set(before.flatMap(({ partitionKey }) => partitionKey ?? []));
  // A key's next message must not pass the one that was tried.
  const others = (await session.readFor(probe, { except: tried, limit: SUSPECTS })).filter(
    ({ partitionKey }) => partitionKey === null || !keys.has(partitionKey),
  );
  const [message = suspects[0], ...more] = others;
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
