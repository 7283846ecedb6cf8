import { ConfigurationError } from '../../message/errors.ts';
import type { OutboxRow } from '../../message/message.ts';
import { createOutbox, type Outbox, type ProducerOptions } from '../../outbox/producer.ts';
import { producerFromEnvironment } from '../../publish/producer-environment.ts';
import type { SqlExecutor } from '../executor.ts';
import { type PostgresTables, postgresNames } from './names.ts';
import { addSql } from './sql/add.ts';

/** Options of `postgresOutbox`. */
export interface PostgresOutboxOptions extends PostgresTables, ProducerOptions {
  /**
   * Take a lock per partition key until the transaction ends, for writers of one key that don't serialise by
   * themselves (by updating the aggregate's row first, say). Without it, two transactions that add to one key at the
   * same time are published in the order in which they added, not in which they committed. @default false
   */
  readonly serializeKeys?: boolean;
}

/**
 * The outbox on PostgreSQL. What the options leave open is read from the environment that `grantProduce` sets.
 *
 * @example
 * const outbox = postgresOutbox();
 * await client.query('BEGIN');
 * await client.query('INSERT INTO orders …');
 * const [result] = await outbox.add(client, [
 *   { destination: 'orders', messageType: 'order.placed', payload: { orderId: '123' } },
 * ]);
 * await client.query('COMMIT');
 * await outbox.wake();
 */
export function postgresOutbox(options: PostgresOutboxOptions = {}): Outbox<SqlExecutor> {
  const sql = addSql(postgresNames(options), { serializeKeys: options.serializeKeys ?? false });
  return createOutbox(
    { insert: (tx: SqlExecutor, rows) => insertRows(tx, sql, rows) },
    { ...producerFromEnvironment(), ...options },
  );
}

/** Runs the statement of `addSql`. Answers the ids that were not there before. */
export async function insertRows(
  tx: SqlExecutor,
  sql: string,
  rows: readonly OutboxRow[],
): Promise<ReadonlySet<string>> {
  refusePool(tx);
  const answer = await tx.query(sql, [JSON.stringify(rows.map(record))]);
  return new Set(answer.rows.map((row) => String(row['id'])));
}

/** Each query of a pool may run on another connection, so the messages would be committed whatever becomes of the transaction. */
function refusePool(tx: SqlExecutor): void {
  if (tx === null || typeof tx !== 'object' || typeof tx.query !== 'function') {
    throw new ConfigurationError(
      'outbox.add takes the transaction first: a pg client, or what fromKysely(trx) and its like answer',
    );
  }
  if ('idleCount' in tx && 'waitingCount' in tx) {
    throw new ConfigurationError(
      'outbox.add was given a pg Pool, whose queries share no transaction: give it the client that began yours',
    );
  }
}

function record(row: OutboxRow): Record<string, unknown> {
  return {
    id: row.id,
    destination: row.destination,
    message_type: row.messageType,
    payload: row.payload,
    headers: row.headers,
    correlation_id: row.correlationId,
    partition_key: row.partitionKey,
    delay_seconds: row.delaySeconds,
    max_retries: row.maxRetries,
  };
}
