import type { Names } from '../names.ts';

/**
 * Adds messages within the caller's transaction, in one round trip. `$1`: a JSON array of rows.
 *
 * - One text parameter, since not every ORM can bind an array; the recordset keeps its order, and so the sequence does.
 * - `ON CONFLICT` lets a known id fall out without an error, which would abort the caller's transaction.
 * - Instants are this server's: the client sends a delay only. `clock_timestamp()`, since `now()` is the time at which
 *   the caller's transaction began.
 */
export function addSql(names: Names, options: { readonly serializeKeys?: boolean } = {}): string {
  return `
WITH given AS MATERIALIZED (
  SELECT * FROM ROWS FROM (json_to_recordset($1::json) AS (
    id uuid, destination text, message_type text, payload text, headers jsonb, correlation_id text,
    partition_key text, delay_seconds float8, max_retries integer
  )) WITH ORDINALITY AS rows (id, destination, message_type, payload, headers, correlation_id,
    partition_key, delay_seconds, max_retries, place)
)${options.serializeKeys ? `, ${locks}` : ''}
INSERT INTO ${names.outbox} (id, destination, message_type, payload, headers, correlation_id, partition_key,
  created_at_utc, next_attempt_at_utc, max_retries)
SELECT id, destination, message_type, payload, headers, correlation_id, partition_key, clock_timestamp(),
  CASE WHEN delay_seconds > 0 THEN clock_timestamp() + make_interval(secs => delay_seconds) END, max_retries
FROM given${options.serializeKeys ? '\nWHERE (SELECT count(*) FROM locked) >= 0' : ''}
ORDER BY place
ON CONFLICT (id) DO NOTHING
RETURNING id::text`;
}

/**
 * A lock per key until the transaction ends, so that sequence order is commit order also for writers of one key that
 * don't serialise by themselves. Taken in one order by all, and before the first sequence number is drawn.
 */
const locks = `keys AS MATERIALIZED (
  SELECT DISTINCT hashtextextended(partition_key, hashtextextended(destination, 0)) AS key
  FROM given WHERE partition_key IS NOT NULL ORDER BY 1
), locked AS MATERIALIZED (
  SELECT pg_advisory_xact_lock(key) FROM keys
)`;
