import { ConfigurationError, MessageRefused } from '../../message/errors.ts';
import type { OutboxRow } from '../../message/message.ts';
import { createOutbox, type Outbox, type ProducerOptions } from '../../outbox/producer.ts';
import { producerFromEnvironment } from '../../publish/producer-environment.ts';
import type { SqlExecutor } from '../executor.ts';
import { sqlNumber } from './connection-errors.ts';
import { type RequestMaker, runRequest } from './executor.ts';
import { type SqlServerTables, sqlServerNames } from './names.ts';
import { addSql, NO_TRANSACTION } from './sql/add.ts';

/** What `outbox.add` takes: an mssql `Transaction` that has begun, or what `fromKysely(trx)` and its like answer. */
export type SqlServerProducerTransaction = RequestMaker | SqlExecutor;

/** Options of `sqlServerOutbox`. */
export interface SqlServerOutboxOptions extends SqlServerTables, ProducerOptions {
  /**
   * Take a lock per partition key until the transaction ends, for writers of one key that don't serialise by
   * themselves (by updating the aggregate's row first, say). Without it, two transactions that add to one key at the
   * same time are published in the order in which they added, not in which they committed. @default false
   */
  readonly serializeKeys?: boolean;
}

/**
 * The outbox on SQL Server. What the options leave open is read from the environment that `grantProduce` sets.
 *
 * @example
 * const outbox = sqlServerOutbox();
 * const transaction = new sql.Transaction(pool);
 * await transaction.begin();
 * await transaction.request().query('INSERT INTO orders …');
 * const [result] = await outbox.add(transaction, [
 *   { destination: 'orders', messageType: 'order.placed', payload: { orderId: '123' } },
 * ]);
 * await transaction.commit();
 * await outbox.wake();
 */
export function sqlServerOutbox(options: SqlServerOutboxOptions = {}): Outbox<SqlServerProducerTransaction> {
  const text = addSql(sqlServerNames(options), { serializeKeys: options.serializeKeys ?? false });
  return createOutbox(
    { insert: (tx: SqlServerProducerTransaction, rows) => insertRows(executorOf(tx), text, rows) },
    { ...producerFromEnvironment(), ...options },
  );
}

/** Runs the statement of `addSql`. Answers the ids that were not there before. */
export async function insertRows(
  tx: SqlExecutor,
  text: string,
  rows: readonly OutboxRow[],
): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  const first = rows.filter(({ id }) => !seen.has(id.toLowerCase()) && seen.add(id.toLowerCase()));
  for (const row of first) refuseLong(row);
  try {
    const answer = await tx.query(text, [JSON.stringify(first.map(record))]);
    const added = new Set(answer.rows.map((row) => String(row['id']).toLowerCase()));
    return new Set(first.flatMap(({ id }) => (added.has(id.toLowerCase()) ? [id] : [])));
  } catch (error) {
    if (sqlNumber(error) !== NO_TRANSACTION) throw error;
    throw new ConfigurationError(
      'outbox.add was given a connection without a transaction: begin one, so that the work and its messages go together',
      { cause: error },
    );
  }
}

function executorOf(tx: SqlServerProducerTransaction): SqlExecutor {
  if (tx === null || typeof tx !== 'object') throw notATransaction();
  if ('request' in tx && typeof tx.request === 'function') {
    // A pool makes requests too, each on another connection: the messages would be committed whatever becomes of the transaction.
    if ('connecting' in tx || !('commit' in tx)) {
      throw new ConfigurationError(
        'outbox.add was given an mssql ConnectionPool, whose requests share no transaction: give it the Transaction',
      );
    }
    return { query: (text, values) => runRequest(tx.request(), text, values) };
  }
  if ('query' in tx && typeof tx.query === 'function') return tx;
  throw notATransaction();
}

function notATransaction(): ConfigurationError {
  return new ConfigurationError(
    'outbox.add takes the transaction first: an mssql Transaction, or what fromKysely(trx) and its like answer',
  );
}

const columns = { messageType: 200, correlationId: 200, partitionKey: 200 } as const;

/** The columns count UTF-16 code units, of which an emoji has two. */
function refuseLong(row: OutboxRow): void {
  for (const [field, most] of Object.entries(columns)) {
    const length = row[field as keyof typeof columns]?.length ?? 0;
    if (length > most) {
      throw new MessageRefused(field, `at most ${most} UTF-16 code units on SQL Server`, `${length} of them`);
    }
  }
}

function record(row: OutboxRow, place: number): Record<string, unknown> {
  return {
    place,
    id: row.id,
    destination: row.destination,
    message_type: row.messageType,
    payload: row.payload,
    headers: row.headers === null ? null : JSON.stringify(row.headers),
    correlation_id: row.correlationId,
    partition_key: row.partitionKey,
    delay_ms: row.delaySeconds === null ? null : Math.ceil(row.delaySeconds * 1000),
    max_retries: row.maxRetries,
  };
}
