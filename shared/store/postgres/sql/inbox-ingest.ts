import type { Names } from '../names.ts';

/**
 * Stores a batch in one statement: `$1` is a JSON array of rows with their place `n`.
 *
 * - What is there already is found by a probe per row (LATERAL with LIMIT keeps it an index probe), which also tells
 *   whether its payload is another one.
 * - `ON CONFLICT` names no target: the identity is ours, or the seed's index on a table of the seed's.
 * - Rows are inserted in the order given, since their sequence is their order of arrival. Their keys are locked after
 *   that, sorted; see the rules in `inbox-keys.ts`. A key whose head stands before the new row is locked and left as it is.
 *
 * Answers a row per row given: `added`, `differs`, and `raced` for a duplicate that was committed meanwhile, which this
 * statement's snapshot can't show.
 */
export function ingest(names: Names): string {
  return `
WITH input AS MATERIALIZED (
  SELECT r.*, first_value(n) OVER copies AS first_n, first_value(payload) OVER copies AS first_payload
  FROM json_to_recordset($1::json) AS r (n integer, id uuid, consumer text, source text, external_message_id text,
    message_type text, payload text, headers jsonb, correlation_id text, partition_key text, max_retries integer,
    failed_reason text)
  WINDOW copies AS (PARTITION BY consumer, source, external_message_id ORDER BY n)
), first AS MATERIALIZED (
  SELECT input.*, known.payload AS known_payload
  FROM input LEFT JOIN LATERAL (
    SELECT i.payload FROM ${names.inbox} AS i
    WHERE i.consumer = input.consumer AND i.source = input.source AND i.external_message_id = input.external_message_id
    LIMIT 1
  ) AS known ON true
  WHERE n = first_n
), added AS (
  INSERT INTO ${names.inbox} (id, consumer, source, external_message_id, message_type, payload, headers, correlation_id,
    partition_key, max_retries, created_at_utc, state, processed_at_utc, last_error)
  SELECT id, consumer, source, external_message_id, message_type, payload, headers, correlation_id,
    CASE WHEN failed_reason IS NULL THEN partition_key END, max_retries, clock_timestamp(),
    CASE WHEN failed_reason IS NULL THEN 0 ELSE 3 END,
    CASE WHEN failed_reason IS NOT NULL THEN clock_timestamp() END, failed_reason
  FROM first WHERE known_payload IS NULL
  ORDER BY n
  ON CONFLICT DO NOTHING
  RETURNING id, consumer, source, partition_key, sequence, message_type
), heads AS (
  SELECT DISTINCT ON (consumer, source, partition_key) consumer, source, partition_key, sequence, message_type
  FROM added WHERE partition_key IS NOT NULL
  ORDER BY consumer, source, partition_key, sequence
), keys AS (
  INSERT INTO ${names.keys} AS k (consumer, source, partition_key, head_sequence, head_type)
  SELECT consumer, source, partition_key, sequence, message_type FROM heads
  ORDER BY consumer, source, partition_key
  ON CONFLICT (consumer, source, partition_key) DO UPDATE SET
    head_sequence = EXCLUDED.head_sequence, head_type = EXCLUDED.head_type, next_attempt_at_utc = NULL, blocked = false
  WHERE EXCLUDED.head_sequence < k.head_sequence
)
SELECT input.n, added.id IS NOT NULL AS added,
  input.payload IS DISTINCT FROM coalesce(first.known_payload, input.first_payload) AS differs,
  input.n = input.first_n AND first.known_payload IS NULL AND added.id IS NULL AS raced
FROM input JOIN first ON first.n = input.first_n LEFT JOIN added ON added.id = input.id
ORDER BY input.n`;
}

/** Whether rows that another ingest stored at the same moment have another payload; `$1` as for `ingest`. */
export function compare(names: Names): string {
  return `
SELECT r.n, coalesce(r.payload IS DISTINCT FROM known.payload, false) AS differs
FROM json_to_recordset($1::json) AS r (n integer, consumer text, source text, external_message_id text, payload text)
JOIN LATERAL (
  SELECT i.payload FROM ${names.inbox} AS i
  WHERE i.consumer = r.consumer AND i.source = r.source AND i.external_message_id = r.external_message_id
  LIMIT 1
) AS known ON true`;
}

/** The direct consumer's claim; waits where another transaction is about to commit the same digest. */
export function receive(names: Names): string {
  return `INSERT INTO ${names.receipts} (digest) VALUES ($1) ON CONFLICT DO NOTHING RETURNING true AS first`;
}
