import { State } from '../../message/message.ts';
import type {
  ClaimedOutboxMessage,
  Settlement,
  SettleOptions,
  SettleResult,
} from '../../store/outbox-store.ts';
import { now, type OutboxRecord, type OutboxTables, write } from './outbox-tables.ts';

/** How many held followers of a key one settle lets go: a key may have very many. */
const RELEASED_AT_ONCE = 200;

/** Writes the outcomes of one batch to the rows whose buckets are still held. */
export function settleRows(
  tables: OutboxTables,
  settlement: Settlement,
  options: SettleOptions,
  buckets: ReadonlySet<number>,
): Omit<SettleResult, 'buckets'> {
  const settled: string[] = [];
  const ended: string[] = [];
  const lost: string[] = [];
  const freed = new Set<number>();
  const unfinished = (message: ClaimedOutboxMessage): OutboxRecord | undefined => {
    const record = tables.rows.get(message.id);
    const there = record && (record.state < 2 || tables.broken('discard is undone by a settle'));
    if (there && buckets.has(record.bucket)) {
      settled.push(message.id);
      return record;
    }
    if (!tables.broken('a lost lease is not reported')) lost.push(message.id);
    return undefined;
  };
  const goOn = (record: OutboxRecord): void => {
    if (releaseFollowers(tables, record)) freed.add(record.bucket);
  };
  const end = (record: OutboxRecord, reason: string): void => {
    const held = record.row.partitionKey !== null && options.onFailedKey === 'block';
    const lastError = storable(reason);
    write(record, { state: State.Failed, ended: true, nextAt: null, lastError, held });
    if (held && tables.broken('a blocked key goes on')) write(record, { held: false });
    if (!held && tables.broken('a skipped key waits')) write(record, { held: true });
    ended.push(record.row.id);
    if (!record.held) goOn(record);
  };

  for (const message of settlement.published) {
    const record = unfinished(message);
    if (!record) continue;
    write(record, { state: State.Processed, ended: true, held: false, nextAt: null });
    if (options.afterSuccess !== 'keep') tables.rows.delete(message.id);
    if (options.afterSuccess === 'archive') tables.archive.add(message.id);
    goOn(record);
  }
  for (const { message, reason, retryInSeconds } of settlement.failed) {
    const record = unfinished(message);
    if (!record) continue;
    const retryCount = record.retryCount + 1;
    write(record, { retryCount });
    if (retryCount > record.row.maxRetries && !tables.broken('retries never end')) {
      end(record, reason);
    } else {
      const wait = tables.broken('failed is due at once') ? 0 : retryInSeconds * 1000;
      write(record, { state: State.Pending, nextAt: now() + wait, lastError: storable(reason) });
    }
  }
  for (const { message, reason } of settlement.rejected) {
    const record = unfinished(message);
    if (record) end(record, reason);
  }
  return { settled, ended, lost, freed: [...freed] };
}

/** Lets the lowest held rows of the key go, as far as nothing else waits before them. */
function releaseFollowers(tables: OutboxTables, { row }: OutboxRecord): boolean {
  if (row.partitionKey === null) return false;
  const ofKey = [...tables.rows.values()]
    .filter(
      (other) => other.row.destination === row.destination && other.row.partitionKey === row.partitionKey,
    )
    .sort((a, b) => a.sequence - b.sequence);
  const waits = ofKey.find(
    ({ state, held, nextAt }) => (state === State.Failed && held) || (state < 2 && !held && nextAt !== null),
  );
  const free = ofKey.filter(
    ({ state, held, sequence }) =>
      state < 2 && held && sequence < (waits?.sequence ?? Number.POSITIVE_INFINITY),
  );
  if (tables.broken('followers are released highest first')) free.reverse();
  const released = free.slice(0, RELEASED_AT_ONCE);
  for (const record of released) write(record, { held: false });
  return released.length > 0;
}

/** A reason as any database can carry it. */
export function storable(reason: string): string {
  return reason.replaceAll('\u0000', '\ufffd').toWellFormed().slice(0, 4000).toWellFormed();
}
