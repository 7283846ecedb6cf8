import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigurationError } from '../../message/errors.ts';
import type { InboxStore } from '../inbox-store.ts';
import { digestOf } from './digest.ts';
import { claim } from './inbox/claim.ts';
import type { InboxDatabase } from './inbox/database.ts';
import { ingestRows } from './inbox/ingest.ts';
import { retried } from './inbox/retry.ts';
import { fail, giveBack, mark } from './inbox/settle.ts';
import { type Names, type SqlServerTables, sqlServerNames } from './names.ts';
import { noteClaim } from './sql/inbox-claim.ts';
import { secondsToNextDue } from './sql/inbox-due.ts';
import { receive } from './sql/inbox-ingest.ts';
import { seedIdentity } from './sql/seed-identity.ts';

export type { InboxDatabase } from './inbox/database.ts';

/** How often a process notes that a type has a handler. */
const NOTE_EVERY_MS = 60_000;
/** How long the database may take to say that it takes work. */
const PROBE_MS = 5_000;

/** The inbox on SQL Server. It keeps no state that another process would need. */
export function sqlServerInboxStore<Tx>(
  database: InboxDatabase<Tx>,
  tables: SqlServerTables | Names = {},
): InboxStore<Tx> {
  const names = 'placeholders' in tables ? tables : sqlServerNames(tables);
  const refuseSecondConsumer = seedIdentityCheck(database, names);
  const noted = new Map<string, number>();
  let keyedFirst = false;

  return {
    async ingest(rows) {
      await refuseSecondConsumer(rows.map((row) => row.consumer));
      return await ingestRows(database, names, rows);
    },

    async claim(request) {
      const { consumer, messageType } = request;
      const lane = JSON.stringify([consumer, messageType]);
      const last = noted.get(lane);
      if (last === undefined || performance.now() - last > NOTE_EVERY_MS) {
        await refuseSecondConsumer([consumer]);
        const values = [digestOf(consumer, messageType), consumer, messageType];
        await retried(() => database.query(noteClaim(names), values));
        noted.set(lane, performance.now());
      }
      keyedFirst = !keyedFirst;
      return await claim(database, names, request, keyedFirst);
    },

    begin: (limits) => database.begin(limits),

    async reachable() {
      return await Promise.race([takesWork(database), sleep(PROBE_MS, false, { ref: false })]);
    },

    async markProcessed(transaction, message) {
      return await mark(names, transaction, message);
    },

    async markFailed(failures, options) {
      return await fail(database, names, failures, options.onFailedKey);
    },

    async release(messages) {
      return await giveBack(database, names, messages);
    },

    async receive(transaction, { consumer, source, externalMessageId }) {
      const { rows } = await transaction.executor.query(receive(names), [
        digestOf(consumer, source, externalMessageId),
      ]);
      return rows[0]?.['first'] === 1;
    },

    async secondsToNextDue({ consumer, messageType }) {
      const { rows } = await database.query(secondsToNextDue(names), [digestOf(consumer, messageType)]);
      const seconds = rows[0]?.['seconds'];
      return typeof seconds === 'number' ? seconds : undefined;
    },
  };
}

async function takesWork<Tx>(database: InboxDatabase<Tx>): Promise<boolean> {
  try {
    const transaction = await database.begin({ idleMs: PROBE_MS, lockMs: PROBE_MS, statementMs: PROBE_MS });
    await transaction.rollback();
    return true;
  } catch {
    return false;
  }
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
    const { rows } = await database.query(seedIdentity, [names.inbox]);
    gone = rows.length === 0;
    if (gone) return;
    throw new ConfigurationError(
      `consumer "${second}" can't share ${names.inbox}: its unique index ${String(rows[0]?.['name'])} on (Source, ExternalMessageId) would swallow this consumer's copies. Use the default consumer, or replace the index with "relaybox migrate --replace-seed-identity"`,
    );
  };
}
