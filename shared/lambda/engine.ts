import type { Outbox, ProducerOptions } from '../outbox/producer.ts';
import type { SqlExecutor } from '../store/executor.ts';
import type { InboxStore, Transaction, TransactionLimits } from '../store/inbox-store.ts';
import type { OutboxStore } from '../store/outbox-store.ts';
import type { Settings } from './config.ts';

/**
 * A database engine as the Lambda layer sees it. Middlewares and handlers are written against this, so that each
 * engine's entry (`relaybox/postgres/lambda`, `relaybox/sqlserver/lambda`) only binds it and carries one driver.
 */
export interface Engine<Tx> {
  /** Distinguishes the connections of two engines in one process. */
  readonly name: string;
  /** Makes the stores over a pool. Connects to nothing yet. */
  connect(settings: Settings, pool: PoolOptions): EngineConnections<Tx>;
  /** What an application gets as `tx`: the driver's, but begun at its first use, and ended by Relaybox alone. */
  lazy(source: LazyTransaction<Tx>): Tx;
}

/** The kinds of function, as far as the rights they need of the database differ. */
export type Worker = 'producer' | 'relay' | 'ingest' | 'handler' | 'consumer' | 'maintain';

/** The connections of a process to one database. */
export interface PoolOptions {
  readonly max: number;
  /** Asked for each statement: how long its answer may take. */
  readonly queryTimeoutMs: () => number;
  /** How long a connection may take to be there. @default - the store's, 5 s */
  readonly connectTimeoutMs?: number;
}

/** A producer's options where Relaybox begins its transactions. */
export interface UnitProducerOptions extends ProducerOptions {
  readonly serializeKeys?: boolean;
}

/** The stores of one database. */
export interface EngineConnections<Tx> {
  readonly outbox: OutboxStore;
  readonly inbox: InboxStore<Tx>;
  /** The producer, for transactions of these connections. */
  producer(options: UnitProducerOptions): Outbox<SqlExecutor>;
  begin(limits: TransactionLimits): Promise<Transaction<Tx>>;
  /** Throws `SchemaError` where the schema's version, or a grant that this worker needs, is missing; names which. */
  check(worker: Worker): Promise<void>;
  /** Notes that a relay has ended a cycle well, for the health answer. */
  recordCycle(worker: string): Promise<void>;
  /** Closes every connection, idle or not. */
  end(): Promise<void>;
}

/** The client of a transaction that begins when it is first needed. */
export interface LazyTransaction<Tx> {
  /** The driver's own transaction or client, begun by the first caller. Rejects once the transaction has ended. */
  client(): Promise<Tx>;
  /** Counts a statement as running until it has settled; answers it unchanged. */
  track<T>(statement: Promise<T>): Promise<T>;
}
