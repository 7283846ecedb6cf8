import type { AddResult, OutboxRow } from '../../../shared/message/message.ts';
import type { Outbox } from '../../../shared/outbox/producer.ts';
import type { Transaction, TransactionLimits } from '../../../shared/store/inbox-store.ts';
import type { Dialect, Run } from './dialect.ts';
import { createGateway } from './gateway.ts';
import type {
  EngineDatabase,
  EngineInstance,
  ProducerTransaction,
  Sql,
  TestEngine,
  TestTx,
} from './test-engine.ts';
import { not, secondsFromNow } from './values.ts';

/** Stores over some connections, and transactions on them. */
export interface Connected extends EngineInstance {
  begin(limits: TransactionLimits): Promise<Transaction<TestTx>>;
}

/** What each engine brings; the rest is the same on both. */
export interface EngineParts
  extends Pick<
    EngineDatabase,
    | 'url'
    | 'tables'
    | 'operations'
    | 'maintenance'
    | 'producer'
    | 'recordCycle'
    | 'stranger'
    | 'watchedOutbox'
    | 'waiting'
    | 'openTransactions'
    | 'dawdle'
    | 'refused'
    | 'endSession'
    | 'endSessions'
    | 'loseCommit'
  > {
  readonly name: TestEngine['name'];
  readonly dialect: Dialect;
  /** On autocommit, on a connection that no store uses. */
  readonly run: Run;
  /** The file's own stores. */
  readonly own: Connected;
  connect(url: string, max: number): Connected;
  insertRows(tx: TestTx, rows: readonly OutboxRow[]): Promise<ReadonlySet<string>>;
  /** Closes what is left, and drops the database. */
  drop(): Promise<void>;
}

const patient: TransactionLimits = { idleMs: 60_000, lockMs: 60_000, statementMs: 60_000 };

/** Makes a database of an engine's parts. */
export function assemble(parts: EngineParts): EngineDatabase {
  const { own, producer, dialect } = parts;
  const instances = new Set<EngineInstance>([own]);
  const chosen = (text: Sql): string => text[parts.name];
  const inTransaction = (tx: TestTx): Run => {
    return async (text, values) => (await tx.query(text, values)).rows;
  };
  const gateway = createGateway(dialect, parts.run);
  const begin = async (limits = patient): Promise<ProducerTransaction> =>
    producing(await own.begin(limits), producer, parts.insertRows);
  return {
    ...parts,
    ...gateway,
    inbox: own.inbox,
    outbox: own.outbox,
    begin,
    effects: {
      async write(tx, id) {
        await createGateway(dialect, inTransaction(tx)).insert('effects', { id });
      },
      all: async () => (await gateway.rows('effects')).map(({ id }) => String(id)),
    },
    instance({ url = parts.url, max = 4 } = {}) {
      const made = parts.connect(url, max);
      instances.add(made);
      return made;
    },
    async add(messages) {
      const transaction = await begin();
      const results = await transaction.add(messages).catch(async (error) => {
        await transaction.rollback();
        throw error;
      });
      await transaction.commit();
      return results.map(({ id }) => id);
    },
    within: (tx) => createGateway(dialect, inTransaction(tx)),
    sql: (text, values = []) => parts.run(chosen(text), values),
    sqlWithin: (tx, text, values = []) => inTransaction(tx)(chosen(text), values),
    async hold(table, where = {}) {
      const transaction = await own.begin(patient);
      await createGateway(dialect, inTransaction(transaction.tx)).touch(table, where);
      return { release: () => transaction.rollback() };
    },
    async expireInboxLeases(where = {}) {
      const past = { locked_until_utc: secondsFromNow(-0.001) };
      await gateway.update('inbox', past, { state: 1, ...where });
      await gateway.update('keys', past, { lock_token: not(null) });
    },
    async drop() {
      for (const instance of instances) await instance.end();
      await parts.drop();
    },
  };
}

interface Queries<Result> {
  query(text: string, values?: unknown[]): Promise<Result>;
}

/** Shows every statement once it was answered. */
export function watched<Result extends { readonly rows: Record<string, unknown>[] }>(
  database: Queries<Result>,
  see: (text: string, rows: readonly Record<string, unknown>[]) => void,
): Queries<Result> {
  return {
    async query(text, values) {
      const result = await database.query(text, values);
      see(text, result.rows);
      return result;
    },
  };
}

function producing(
  transaction: Transaction<TestTx>,
  producer: Outbox<TestTx>,
  insertRows: EngineParts['insertRows'],
): ProducerTransaction {
  return {
    tx: transaction.tx,
    add: (messages) => producer.add(transaction.executor, messages),
    async addRows(rows): Promise<readonly AddResult[]> {
      const added = new Set(await insertRows(transaction.executor, rows));
      return rows.map(({ id }) => ({ id, added: added.delete(id) }));
    },
    commit: () => transaction.commit(),
    rollback: () => transaction.rollback(),
  };
}
