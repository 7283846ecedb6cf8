import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { ConfigurationError } from '../../message/errors.ts';
import type { InboxStore, Transaction, TransactionLimits } from '../inbox-store.ts';
import { seedIdentity } from './check.ts';
import { claim } from './inbox/claim.ts';
import type { InboxDatabase } from './inbox/database.ts';
import { ingestRows } from './inbox/ingest.ts';
import { fail, giveBack, mark } from './inbox/settle.ts';
import { type Names, type PostgresTables, postgresNames } from './names.ts';
import { noteClaim } from './sql/inbox-claim.ts';
import { secondsToNextDue } from './sql/inbox-due.ts';
import { receive } from './sql/inbox-ingest.ts';

export type { InboxDatabase } from './inbox/database.ts';

const seedIdentitySql = `
SELECT i.indexrelid::regclass::text AS name FROM pg_index AS i WHERE i.indrelid = to_regclass($1) AND ${seedIdentity}`;

/** How long the database may take to begin and end a transaction, before it counts as away. */
const PROBE_MS = 5_000;

/** Limits of that transaction, which does nothing. */
const probing: TransactionLimits = { idleMs: PROBE_MS, lockMs: PROBE_MS, statementMs: PROBE_MS };

/** How often a process notes that a type has a handler. */
const NOTE_EVERY_MS = 60_000;

/** The inbox on PostgreSQL. It keeps no state that another process would need. */
export function postgresInboxStore(
  database: InboxDatabase,
  tables: PostgresTables | Names = {},
): InboxStore<pg.PoolClient> {
  const names = 'placeholders' in tables ? tables : postgresNames(tables);
  const refuseSecondConsumer = seedIdentityCheck(database, names);
  const noted = new Map<string, number>();
  const idleOf = new WeakMap<object, number>();
  let keyedFirst = false;

  return {
    async ingest(rows) {
      await refuseSecondConsumer(rows.map((row) => row.consumer));
      return await ingestRows(database, names, rows);
    },

    async claim(request) {
      const lane = [request.consumer, request.messageType];
      const last = noted.get(JSON.stringify(lane));
      if (last === undefined || performance.now() - last > NOTE_EVERY_MS) {
        await refuseSecondConsumer([request.consumer]);
        await database.query(noteClaim(names), lane);
        noted.set(JSON.stringify(lane), performance.now());
      }
      keyedFirst = !keyedFirst;
      return await claim(database, names, request, keyedFirst);
    },

    async begin(limits: TransactionLimits): Promise<Transaction<pg.PoolClient>> {
      const transaction = await database.begin(limits);
      idleOf.set(transaction, limits.idleMs);
      return transaction;
    },

    async reachable() {
      return await Promise.race([takesWork(database), sleep(PROBE_MS, false, { ref: false })]);
    },

    async markProcessed(transaction, message) {
      return await mark(names, transaction, message, idleOf.get(transaction) ?? Number.MAX_SAFE_INTEGER);
    },

    async markFailed(failures, options) {
      return await fail(database, names, failures, options.onFailedKey);
    },

    async release(messages) {
      return await giveBack(database, names, messages);
    },

    async receive(transaction, receipt) {
      const { rows } = await transaction.executor.query(receive(names), [
        digestOf([receipt.consumer, receipt.source, receipt.externalMessageId]),
      ]);
      return rows.length > 0;
    },

    async secondsToNextDue(request) {
      const { rows } = await database.query(secondsToNextDue(names), [request.consumer, request.messageType]);
      const seconds = rows[0]?.['seconds'];
      return typeof seconds === 'number' ? seconds : undefined;
    },
  };
}

/** A receipt's digest. Each part counts with its length, so that no two receipts have the same bytes before them. */
export function digestOf(parts: readonly string[]): Buffer {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:${part}`);
  return hash.digest();
}

/**
 * On a table with the seed's unique index a second consumer's copy of a message would pass for a duplicate, and be lost.
 * Once the index is gone nobody brings it back, so that answer is kept.
 */
function seedIdentityCheck(
  database: InboxDatabase,
  names: Names,
): (consumers: readonly string[]) => Promise<void> {
  let gone = false;
  return async (consumers) => {
    const second = consumers.find((consumer) => consumer !== '');
    if (gone || second === undefined) return;
    const { rows } = await database.query(seedIdentitySql, [names.inbox]);
    gone = rows.length === 0;
    if (gone) return;
    throw new ConfigurationError(
      `consumer "${second}" can't share ${names.inbox}: its unique index ${String(rows[0]?.['name'])} on (source, external_message_id) would swallow this consumer's copies. Use the default consumer, or replace the index with "relaybox migrate --replace-seed-identity"`,
    );
  };
}

/** A transaction rather than a query: after a failover the old writer still answers, but takes no writes. */
async function takesWork(database: InboxDatabase): Promise<boolean> {
  try {
    const transaction = await database.begin(probing);
    await transaction.rollback();
    return true;
  } catch {
    return false;
  }
}
