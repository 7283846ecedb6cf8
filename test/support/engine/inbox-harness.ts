import { operate } from '../../../shared/operations/operate.ts';
import type { InboxStore, Transaction } from '../../../shared/store/inbox-store.ts';
import type { InboxHarness, InboxIdentity, InboxRowView } from '../../../shared/testing/inbox/harness.ts';
import type { EngineDatabase, TestTx } from './test-engine.ts';
import { secondsFromNow } from './values.ts';

/**
 * Makes harnesses of a database, each over empty tables, for the contract suite. What a person does goes through the operators'
 * commands. Both stores are new and have connections of their own, as function instances have them: whose turn it is in a
 * store's next claim, an unkeyed message's or a key's, is not the case's before.
 */
export function inboxHarnessOn(db: EngineDatabase): () => Promise<InboxHarness<TestTx>> {
  const person = { by: 'ann', reason: 'the contract' };
  return async () => {
    const instances = [db.instance({ max: 16 }), db.instance({ max: 8 })] as const;
    await db.clear('effects', 'inbox', 'keys', 'inboxLanes', 'receipts');
    const open: Transaction<TestTx>[] = [];
    return {
      store: noting(instances[0].inbox, open),
      another: noting(instances[1].inbox, open),
      inspect: (identity) => inspect(db, identity),
      write: (tx, effect) => db.effects.write(tx, effect),
      effects: () => db.effects.all(),
      async insertForeignRow(row) {
        await db.insert('inbox', {
          source: row.source,
          external_message_id: row.externalMessageId,
          message_type: row.messageType,
          payload: row.payload,
          headers: row.headersJson ?? null,
          created_at_utc: secondsFromNow(row.createdInSeconds ?? 0),
          retry_count: row.retryCount ?? 0,
          max_retries: row.maxRetries,
          state: row.state,
          locked_until_utc: row.lockedForMs === undefined ? null : secondsFromNow(row.lockedForMs / 1_000),
        });
      },
      async requeue(identity) {
        await operate(db.operations, { command: 'requeue', ids: [(await inspect(db, identity))?.rowId] });
      },
      async pause(consumer, messageType) {
        await operate(db.operations, { command: 'pause', consumer, messageType, ...person });
      },
      async resume(consumer, messageType) {
        await operate(db.operations, { command: 'resume', consumer, messageType });
      },
      async close() {
        await Promise.all(open.map((transaction) => transaction.destroy()));
        for (const instance of instances) await instance.end();
      },
    };
  };
}

/** The same store. Its transactions are noted, so that none outlives its case and holds up the next. */
function noting(store: InboxStore<TestTx>, open: Transaction<TestTx>[]): InboxStore<TestTx> {
  return {
    ...store,
    async begin(limits) {
      const transaction = await store.begin(limits);
      open.push(transaction);
      return transaction;
    },
  };
}

async function inspect(db: EngineDatabase, identity: InboxIdentity): Promise<InboxRowView | undefined> {
  const { consumer, source, externalMessageId } = identity;
  const found = await db.rows('inbox', { source, external_message_id: externalMessageId });
  // A collation may take several ids for the one that was asked for. Here they are compared exactly.
  const row = found.find(
    (one) =>
      one.consumer === consumer && one.source === source && one.external_message_id === externalMessageId,
  );
  if (row === undefined) return undefined;
  const id = String(row.id);
  const [waits = null] = await db.secondsLeft('inbox', 'next_attempt_at_utc', { id });
  const [version] = await db.sql(
    {
      postgres: `SELECT xmin || '/' || ctid AS version FROM ${db.tables.inbox} WHERE id = $1`,
      // There is no version of a row here: what any of our writes would change stands for it.
      sqlserver: `SELECT CONCAT([State], N'/', [RetryCount], N'/', [MaxRetries], N'/', [LockToken], N'/', [LockedUntilUtc], N'/',
          [NextAttemptAtUtc], N'/', [ProcessedAtUtc], N'/', [LostLeases], N'/', [Held]) AS [version]
        FROM ${db.tables.inbox} WHERE [Id] = @p1`,
    },
    [id],
  );
  return {
    rowId: id,
    state: Number(row.state),
    waitsSeconds: waits,
    lastError: typeof row.last_error === 'string' ? row.last_error : null,
    ended: row.processed_at_utc !== null,
    version: String(version?.['version']),
  };
}
