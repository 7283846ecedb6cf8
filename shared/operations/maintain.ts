import { Deadline } from '../delivery/deadline.ts';
import { defaults } from '../delivery/defaults.ts';
import type { Telemetry } from '../delivery/telemetry.ts';
import type { LaneName, Purgeable } from './requests.ts';
import type { LaneStatus, StatusResponse } from './responses.ts';

/** What maintenance needs of a database. Each part is bounded, and harmless when two do it at once. */
export interface MaintenanceStore {
  status(): Promise<StatusResponse>;
  /** Removes ended rows in small batches, until the limit, the deadline or the end. */
  removeEnded(request: {
    readonly from: Purgeable;
    readonly olderThanDays: number;
    readonly limit: number;
    readonly deadline: Deadline;
  }): Promise<{ readonly removed: number; readonly more: boolean }>;
  /** Lets outbox rows go that are held behind nothing. */
  releaseOrphans(deadline: Deadline): Promise<number>;
  /** Sets inbox keys right that say something else than their messages do. */
  repairKeys(deadline: Deadline): Promise<number>;
  /** Completes rows that another program ended in its own way. */
  normalise(): Promise<number>;
}

/** How a cycle runs, and what it removes. */
export interface MaintainOptions {
  readonly deadline: Deadline;
  readonly telemetry: Telemetry;
  /** Days after which Processed and Discarded rows go. @default 7 */
  readonly outboxDays?: number;
  /** Must exceed the longest redelivery that the queues allow. @default 30 */
  readonly inboxDays?: number;
  /** The same, for what direct consumers have handled. @default 30 */
  readonly receiptsDays?: number;
}

/** What a cycle did. */
export interface MaintainReport {
  readonly removed: Readonly<Record<Purgeable, number>>;
  /** Retention has not caught up: more is left to remove. */
  readonly more: boolean;
  readonly releasedOrphans: number;
  readonly repairedKeys: number;
  readonly normalised: number;
  /** Parts that failed, by name, with the reason. The others were done all the same. */
  readonly failed: Readonly<Record<string, string>>;
}

/** A type with due messages, and no handler that asked for them for so long, has none. */
export const silentHandlerSeconds = 900;

/** Every part has its turn, so retention takes at most so much of one call: 3 × 200 batches. */
const removeLimit = 200_000;

/**
 * One cycle: figures as metrics, repairs, retention. Figures come first, since they are what alarms watch. A part that
 * fails does not keep the others from their turn.
 */
export async function maintain(store: MaintenanceStore, options: MaintainOptions): Promise<MaintainReport> {
  const { deadline, telemetry } = options;
  const failed: Record<string, string> = {};
  const part = async <T>(name: string, otherwise: T, work: () => Promise<T>): Promise<T> => {
    if (deadline.remainingMs() <= 0) return otherwise;
    try {
      return await work();
    } catch (error) {
      failed[name] = error instanceof Error ? error.message : String(error);
      telemetry.logger.error(`maintenance: ${name} failed`, { error: failed[name] });
      return otherwise;
    }
  };
  await part('figures', undefined, async () => {
    for (const lane of (await store.status()).lanes) report(lane, telemetry);
  });
  const normalised = await part('normalise', 0, () => store.normalise());
  const releasedOrphans = await part('orphans', 0, () => store.releaseOrphans(share(deadline, 1 / 4)));
  const repairedKeys = await part('keys', 0, () => store.repairKeys(share(deadline, 1 / 3)));
  const days: Readonly<Record<Purgeable, number>> = {
    outbox: options.outboxDays ?? defaults.outboxRetentionDays,
    inbox: options.inboxDays ?? defaults.inboxRetentionDays,
    receipts: options.receiptsDays ?? defaults.inboxRetentionDays,
  };
  const remove = async (from: Purgeable): Promise<{ removed: number; more: boolean }> => {
    const nothing = { removed: 0, more: true };
    const request = { from, olderThanDays: days[from], limit: removeLimit, deadline };
    const done = await part(`retention of ${from}`, nothing, () => store.removeEnded(request));
    if (done.removed > 0) telemetry.count('Removed', done.removed, from);
    return done;
  };
  const [outbox, inbox, receipts] = [await remove('outbox'), await remove('inbox'), await remove('receipts')];
  if (releasedOrphans + repairedKeys > 0) {
    telemetry.logger.warn('maintenance: mended what should not have been broken', {
      releasedOrphans,
      repairedKeys,
    });
  }
  return {
    removed: { outbox: outbox.removed, inbox: inbox.removed, receipts: receipts.removed },
    more: outbox.more || inbox.more || receipts.more,
    releasedOrphans,
    repairedKeys,
    normalised,
    failed,
  };
}

/** A part of what is left: a repair that does not come to its end goes on in the next cycle, and retention has its turn. */
function share(deadline: Deadline, part: number): Deadline {
  return Deadline.in(deadline.remainingMs() * part);
}

/** A lane's figures as metrics; zeros too, so that an alarm sees the end of what it rang for. */
function report(status: LaneStatus, telemetry: Telemetry): void {
  const lane = laneLabel(status.lane);
  telemetry.count('Backlog', status.due.count + status.waiting.count + status.held.count, lane);
  telemetry.count(
    'OldestDueAgeSeconds',
    status.state === 'paused' ? 0 : (status.oldestDueSeconds ?? 0),
    lane,
  );
  telemetry.count('FailedMessages', status.failed.count, lane);
  telemetry.count('BlockedKeys', status.blockedKeys.count, lane);
  telemetry.count('ExpiredLeases', status.expiredLeases.count, lane);
  telemetry.count('PausedLanes', status.state === 'paused' ? 1 : 0, lane);
  if (status.lane.box === 'outbox') telemetry.count('OpenLanes', status.breaker === null ? 0 : 1, lane);
  else telemetry.count('UnhandledTypes', isUnhandled(status) ? 1 : 0, lane);
}

/** True for a message type with due messages that no handler asks for. */
export function isUnhandled(status: LaneStatus): boolean {
  if (status.lane.box === 'outbox' || status.due.count === 0 || status.state === 'paused') return false;
  const silence = status.lastClaimSeconds ?? Number.POSITIVE_INFINITY;
  // A due message of a moment ago may be the type's first; its handler is only just being woken.
  return silence > silentHandlerSeconds && (status.oldestDueSeconds ?? 0) > 60;
}

/** A lane's name as metrics and tables show it: the destination; the type, with its consumer before it unless it is the default one. */
export function laneLabel(lane: LaneName): string {
  if (lane.box === 'outbox') return lane.destination;
  return lane.consumer === '' ? lane.messageType : `${lane.consumer}/${lane.messageType}`;
}
