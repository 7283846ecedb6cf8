import { Deadline } from '../../../shared/delivery/deadline.ts';
import { operate } from '../../../shared/operations/operate.ts';
import type { Transaction } from '../../../shared/store/inbox-store.ts';
import { asClaimedInbox, type ClaimedInboxMessage } from '../../../shared/store/inbox-store.ts';
import type { DatabaseResult } from '../../../shared/store/sqlserver/database.ts';
import type { InboxDatabase } from '../../../shared/store/sqlserver/inbox/database.ts';
import { sqlServerInboxStore } from '../../../shared/store/sqlserver/inbox-store.ts';
import { recordCycle, sqlServerOperations } from '../../../shared/store/sqlserver/operations.ts';
import { inboxRow } from '../../../shared/testing/inbox/harness.ts';
import { MARK, names, type Sent } from './statements.ts';

const ID = '01890000-0000-7000-8000-00000000abcd';
const KEY = 'AB'.repeat(32);

/** What any statement is answered here: a row with every column that somebody reads. */
const everything: Record<string, unknown> = {
  id: ID,
  key: KEY,
  token: ID,
  lock_token: ID,
  head_id: ID,
  verdict: 'doomed',
  doomed: 1,
  alone: 0,
  done: 1,
  next_type: null,
  ended: 0,
  added: 1,
  differs: 0,
  first: 1,
  consumer: MARK,
  source: MARK,
  external_message_id: MARK,
  message_type: MARK,
  payload: MARK,
  partition_key: MARK,
  sequence: '1',
  retry_count: 1,
  max_retries: 5,
  created_at: '2026-11-30T00:00:00.000Z',
  destination: MARK,
  bucket: 3,
  state: 3,
  running: false,
  orphaned: true,
  wrong: true,
  missing: true,
  changed: 0,
  removed: 0,
  busy: false,
  count: 0,
  worker: MARK,
  age: 1,
};

/** A database that answers that, and remembers what it was asked. */
function recording(by: () => string, sent: Sent[], answer: Record<string, unknown>[]): InboxDatabase {
  const query = async (text: string, values: unknown[] = []): Promise<DatabaseResult> => {
    sent.push({ by: by(), text, values });
    return { rows: answer, sets: [answer] };
  };
  const transaction: Transaction<unknown> = {
    tx: undefined,
    executor: { query },
    commit: async () => undefined,
    rollback: async () => undefined,
    destroy: async () => undefined,
  };
  return { query, begin: async () => transaction };
}

/** Every statement of the inbox and of the operators' commands, as they are sent. */
export async function inboxStatements(): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  let by = '';
  const database = recording(() => by, sent, [everything]);
  const run = async (name: string, work: () => Promise<unknown>): Promise<void> => {
    by = name;
    // What an answer like that leads to is no matter here: a figure may be missing in it.
    await work().catch(() => undefined);
  };
  const store = sqlServerInboxStore(database, names);
  const transaction = await store.begin({ idleMs: 1, lockMs: 1, statementMs: 1 });
  const request = {
    consumer: '',
    messageType: MARK,
    limit: 50,
    maxBytes: 1000,
    leaseMs: 30_000,
    onFailedKey: 'block',
  } as const;
  const plain = claimed(null);
  const keyed = claimed(MARK);

  await run('ingest', () => store.ingest([inboxRow({ payload: MARK, partitionKey: MARK })]));
  await run('claim', () => store.claim(request));
  await run('claim again', () => store.claim({ ...request, maxRetries: 3 }));
  await run('claim of one source', () => store.claim({ ...request, source: MARK }));
  await run('mark', () => store.markProcessed(transaction, plain));
  await run('mark keyed', () => store.markProcessed(transaction, keyed));
  for (const message of [plain, keyed]) {
    const failures = [{ message, reason: MARK, retryInSeconds: 1.5 }];
    await run('fail', () => store.markFailed(failures, { onFailedKey: 'block' }));
    await run('release', () => store.release([message]));
  }
  await run('receive', () =>
    store.receive(transaction, { consumer: MARK, source: MARK, externalMessageId: MARK }),
  );
  await run('due', () => store.secondsToNextDue({ consumer: '', messageType: MARK }));
  await run('second consumer', () => store.claim({ ...request, consumer: MARK }));

  const { operations, maintenance } = sqlServerOperations({
    source: database,
    tables: names.plain,
    leases: {
      lease: async ({ destination }) => ({ destination, token: ID, buckets: [3] }),
      release: async () => undefined,
    },
  });
  const by_ = { by: MARK, reason: MARK };
  const requests = [
    { command: 'status' },
    { command: 'failed', box: 'outbox' },
    { command: 'failed', box: 'inbox' },
    { command: 'failed', messageType: MARK },
    { command: 'show', id: ID, payload: true },
    { command: 'show', source: MARK, externalMessageId: MARK },
    { command: 'requeue', ids: [ID] },
    { command: 'discard', ids: [ID], ...by_ },
    { command: 'pause', destination: 'orders', ...by_ },
    { command: 'pause', messageType: MARK, ...by_ },
    { command: 'resume', destination: 'orders' },
    { command: 'resume', messageType: MARK },
    { command: 'doctor' },
    { command: 'health' },
    ...['outbox', 'inbox', 'receipts'].flatMap((from) => [
      { command: 'purge', from, olderThanDays: 7 },
      { command: 'purge', from, olderThanDays: 7, dryRun: true },
    ]),
  ];
  for (const one of requests) await run(one.command, () => operate(operations, one));
  await run('orphans', () => maintenance.releaseOrphans(Deadline.in(60_000)));
  await run('keys', () => maintenance.repairKeys(Deadline.in(60_000)));
  await run('normalise', () => maintenance.normalise());
  await run('cycle', () => recordCycle(database, names, MARK));
  return sent;
}

function claimed(partitionKey: string | null): ClaimedInboxMessage {
  return asClaimedInbox({
    rowId: ID,
    lockToken: ID,
    consumer: '',
    source: MARK,
    externalMessageId: MARK,
    messageType: MARK,
    payload: MARK,
    headers: {},
    correlationId: null,
    partitionKey,
    attempt: 1,
    maxRetries: 5,
    createdAt: '2026-11-30T00:00:00.000Z',
  });
}
