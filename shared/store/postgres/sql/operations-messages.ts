import { bucketOf, type Names } from '../names.ts';
import { iso } from './operations-shared.ts';
import { paused } from './outbox-predicates.ts';

/**
 * A page of the outbox's Failed rows. The place is compared as a row of the index's columns, so that each page costs
 * the same. `$1` destination or null, `$2` and `$3` the place to start behind (destination, id) or null, `$4` limit.
 */
export function failedOutbox(names: Names): string {
  return `
SELECT id, destination, message_type, NULL AS consumer, NULL AS source, NULL AS external_message_id, partition_key, correlation_id,
  retry_count, max_retries, ${iso('created_at_utc')} AS created_at, ${iso('processed_at_utc')} AS ended_at,
  held AS blocks_key, left(last_error, 500) AS last_error
FROM ${names.outbox}
WHERE state = 3 AND ($1::text IS NULL OR destination = $1)
  AND (destination, id) > (coalesce($2::text, $1::text, ''), coalesce($3::uuid, '00000000-0000-0000-0000-000000000000'))
ORDER BY destination, id LIMIT $4`;
}

/** The same of the inbox. `$1` consumer, `$2` type or null, `$3`–`$5` the place (consumer, type, id) or null, `$6` limit. */
export function failedInbox(names: Names): string {
  return `
SELECT i.id, NULL AS destination, i.message_type, i.consumer, i.source, i.external_message_id, i.partition_key, i.correlation_id,
  i.retry_count, i.max_retries, ${iso('i.created_at_utc')} AS created_at, ${iso('i.processed_at_utc')} AS ended_at,
  i.held AS blocks_key, left(i.last_error, 500) AS last_error
FROM ${names.inbox} AS i
WHERE i.processed_at_utc IS NOT NULL AND i.last_error IS NOT NULL AND i.state = 3 AND ($2::text IS NULL OR (i.consumer = $1 AND i.message_type = $2))
  AND (i.consumer, i.message_type, i.id) >
    (coalesce($3::text, $1::text, ''), coalesce($4::text, $2::text, ''), coalesce($5::uuid, '00000000-0000-0000-0000-000000000000'))
ORDER BY i.consumer, i.message_type, i.id LIMIT $6`;
}

const common = (alias: string): string => `
  ${alias}.id, ${alias}.message_type, ${alias}.partition_key, ${alias}.sequence::text AS sequence, ${alias}.correlation_id, ${alias}.headers::text AS headers,
  ${alias}.state, ${alias}.retry_count, ${alias}.max_retries, ${iso(`${alias}.created_at_utc`)} AS created_at,
  ${iso(`${alias}.next_attempt_at_utc`)} AS next_attempt_at, ${iso(`${alias}.locked_until_utc`)} AS locked_until,
  ${iso(`${alias}.processed_at_utc`)} AS ended_at, ${alias}.last_error, ${alias}.held, octet_length(${alias}.payload) AS payload_bytes,
  CASE WHEN $1::boolean THEN ${alias}.payload END AS payload,
  coalesce(${alias}.next_attempt_at_utc > now(), false) AS waits,
  coalesce(${paused('n')}, false) AS paused, n.paused_by`;

/** One outbox row with what stands around it. `$1` with payload, `$2` id. */
export function showOutbox(names: Names): string {
  return `
SELECT ${common('o')}, o.destination, ${bucketOf('o')}::int AS bucket,
  coalesce(o.state = 1 AND o.locked_until_utc > now(), false) AS running,
  n.open_until_utc IS NOT NULL AS open, coalesce(s.locked_until_utc > now(), false) AS leased
FROM ${names.outbox} AS o
LEFT JOIN ${names.lanes} AS n ON n.destination = o.destination
LEFT JOIN ${names.leases} AS s ON s.destination = o.destination AND s.bucket = ${bucketOf('o')}
WHERE o.id = $2`;
}

/**
 * Inbox rows with what stands around them. `$1` with payload, `$2` id or null, else `$3` consumer or null, `$4` source,
 * `$5` external message id. Without a consumer those are tried that have a lane, since the index leads with the consumer.
 */
export function showInbox(names: Names): string {
  return `
WITH ids AS (
  SELECT $2::uuid AS id WHERE $2::uuid IS NOT NULL
  UNION ALL
  SELECT i.id FROM (
    SELECT consumer FROM ${names.inboxLanes} WHERE $3::text IS NULL
    UNION SELECT coalesce($3::text, '')
  ) AS c
  JOIN ${names.inbox} AS i ON i.consumer = c.consumer AND i.source = $4 AND i.external_message_id = $5
  WHERE $2::uuid IS NULL
)
SELECT ${common('i')}, i.consumer, i.source, i.external_message_id,
  coalesce(i.state = 1 AND i.locked_until_utc > now(), false) AS running,
  k.partition_key IS NOT NULL AS keyed, coalesce(k.blocked, false) AS blocked, coalesce(k.head_sequence = i.sequence, false) AS head,
  coalesce(k.locked_until_utc > now(), false) AS leased, n.last_claim_at_utc IS NULL AS unclaimed
FROM ids JOIN ${names.inbox} AS i USING (id)
LEFT JOIN ${names.inboxLanes} AS n ON n.consumer = i.consumer AND n.message_type = i.message_type
LEFT JOIN ${names.keys} AS k ON k.consumer = i.consumer AND k.source = i.source AND k.partition_key = i.partition_key
ORDER BY i.consumer`;
}
