import type { AddResult, NewMessage, OutboxRow } from '../../../shared/message/message.ts';
import type { MaintenanceStore } from '../../../shared/operations/maintain.ts';
import type { Operations } from '../../../shared/operations/operations.ts';
import type { Outbox } from '../../../shared/outbox/producer.ts';
import type { SqlExecutor } from '../../../shared/store/executor.ts';
import type { InboxStore, TransactionLimits } from '../../../shared/store/inbox-store.ts';
import type { OutboxStore } from '../../../shared/store/outbox-store.ts';
import type { TableGateway, Where } from './gateway.ts';
import type { Table } from './tables.ts';

/** A handler's transaction, as far as tests of both engines use it. Statements go through `db.sql` and its like. */
export type TestTx = SqlExecutor;

/** The same in each engine's own words. Values are `$1` on PostgreSQL and `@p1` on SQL Server. */
export interface Sql {
  readonly postgres: string;
  readonly sqlserver: string;
}

export interface DatabaseOptions {
  /** The default of the database's sessions, where the engine's sessions have one. */
  readonly timezone?: string;
  /** READ_COMMITTED_SNAPSHOT, which SQL Server's databases have. @default `RELAYBOX_SQLSERVER_SNAPSHOT`, or OFF */
  readonly snapshot?: 'ON' | 'OFF';
  /** Names of the tables, in place of the engine's own. */
  readonly tables?: { readonly schema?: string; readonly outboxTable?: string; readonly inboxTable?: string };
}

/** An engine under test, and where it differs by design. See docs/engines.md. */
export interface TestEngine {
  readonly name: 'postgres' | 'sqlserver';
  /** A statement that failed leaves a transaction that can only roll back, although the application caught the error. */
  readonly caughtErrorDoomsTransaction: boolean;
  /** The server ends a session that leaves its transaction idle for longer than its limit. */
  readonly endsIdleTransactions: boolean;
  /** Repairs go through the keys in the order of their names; otherwise in that of their digests. */
  readonly repairsKeysByName: boolean;
  /** Limits of text are UTF-16 code units, and not characters. */
  readonly countsCodeUnits: boolean;
  /** Messages in a test of many: as many as pass in a minute or two where the engine's tests are run. */
  readonly many: number;
  /** A function's timeout, as short as a new process with its first statements can bear where the engine's tests are run. */
  readonly shortMs: number;
  /** Creates a migrated database of the file's own. */
  createDatabase(options?: DatabaseOptions): Promise<EngineDatabase>;
  /** Creates a database with nothing in it. */
  createEmpty(): Promise<{ readonly url: string; drop(): Promise<void> }>;
}

/** Both stores over connections of their own, as another function instance has them. */
export interface EngineInstance {
  readonly inbox: InboxStore<TestTx>;
  readonly outbox: OutboxStore;
  readonly operations: Operations;
  end(): Promise<void>;
}

/** A producer's open transaction. */
export interface ProducerTransaction {
  readonly tx: TestTx;
  add(messages: readonly NewMessage[]): Promise<readonly AddResult[]>;
  /** Adds rows as they are, without what the producer refuses or makes of a message. */
  addRows(rows: readonly OutboxRow[]): Promise<readonly AddResult[]>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
}

/** The application's own table in tests: what handlers write. */
export interface Effects {
  write(tx: TestTx, id: string): Promise<void>;
  /** What was committed, in the order in which it was written. */
  all(): Promise<string[]>;
}

/** A migrated database, with Relaybox's stores over it and what tests do to it. */
export interface EngineDatabase extends TableGateway {
  readonly url: string;
  /** The tables' names as statements want them. */
  readonly tables: Readonly<Record<Table, string>>;
  readonly inbox: InboxStore<TestTx>;
  readonly outbox: OutboxStore;
  readonly operations: Operations;
  readonly maintenance: MaintenanceStore;
  /** `outbox.add` as applications have it. */
  readonly producer: Outbox<TestTx>;
  readonly effects: Effects;
  /** Notes a worker's cycle, as functions do. */
  recordCycle(worker: string): Promise<void>;
  /** Makes a login that may connect to the database and look at none of its tables. */
  stranger(): Promise<{ readonly url: string; remove(): Promise<void> }>;
  /** Another function instance. It is ended with the database where the test doesn't. */
  instance(options?: { readonly url?: string; readonly max?: number }): EngineInstance;
  /** The outbox's store, with every statement that it runs shown, and the rows that came. */
  watchedOutbox(see: (text: string, rows: readonly Record<string, unknown>[]) => void): OutboxStore;
  /** Begins a transaction of an application. */
  begin(limits?: TransactionLimits): Promise<ProducerTransaction>;
  /** Adds messages in one committed transaction; answers their ids. */
  add(messages: readonly NewMessage[]): Promise<readonly string[]>;
  /** The gateway inside a transaction. */
  within(tx: TestTx): TableGateway;
  /** What no gateway has words for. Answers the rows as the driver brings them. */
  sql(text: Sql, values?: unknown[]): Promise<readonly Record<string, unknown>[]>;
  sqlWithin(tx: TestTx, text: Sql, values?: unknown[]): Promise<readonly Record<string, unknown>[]>;
  /** Locks rows in a transaction of another session, until released. */
  hold<T extends Table>(table: T, where?: Where<T>): Promise<{ release(): Promise<void> }>;
  /** Sessions of this database that wait for another's lock. */
  waiting(): Promise<number>;
  /** Sessions of functions in this database that are in a transaction, or wait in one. */
  openTransactions(): Promise<number>;
  /** A statement that keeps the transaction's connection busy for so long. */
  dawdle(tx: TestTx, seconds: number): Promise<unknown>;
  /** A statement that the server refuses. */
  refused(tx: TestTx): Promise<unknown>;
  /** Ends the transaction's connection, by the server. */
  endSession(tx: TestTx): Promise<void>;
  /** Ends the sessions of all functions, by the server and at once, as a failover does. Answers how many. */
  endSessions(): Promise<number>;
  /** Sees to it that the transaction's commit ends its connection instead of being answered. */
  loseCommit(tx: TestTx): Promise<void>;
  /** Lets the leases that run on inbox messages be over, and those on every key. */
  expireInboxLeases(where?: Where<'inbox'>): Promise<void>;
  /** Closes all connections and drops the database. */
  drop(): Promise<void>;
}
