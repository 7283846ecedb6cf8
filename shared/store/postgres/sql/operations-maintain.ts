import type { Names } from '../names.ts';
import { headOf, keyIdentity, sameKey, standing } from './inbox-keys.ts';

const batchLimit = 1000;
/** How many rows that are due are looked through for ones that another program ended without saying when. */
const lookLimit = 50_000;

/**
 * Other programs may end a row without `processed_at_utc`. In the outbox only retention would miss it. Rows come from
 * the indexes of ended and Failed ones.
 */
export function normaliseOutbox(names: Names): string {
  return `
WITH batch AS MATERIALIZED (
  SELECT id FROM (
    SELECT id FROM ${names.outbox} WHERE state IN (2, 4) AND processed_at_utc IS NULL LIMIT ${batchLimit} FOR UPDATE SKIP LOCKED
  ) AS ended
  UNION ALL
  SELECT id FROM (
    SELECT id, processed_at_utc FROM ${names.outbox} WHERE state = 3 LIMIT ${lookLimit}
  ) AS failed WHERE processed_at_utc IS NULL
)
UPDATE ${names.outbox} AS o SET processed_at_utc = clock_timestamp() FROM batch AS b
WHERE o.id = b.id AND o.state >= 2 AND o.processed_at_utc IS NULL`;
}

/**
 * In the inbox such a row would also stay in the index of ready ones, or in its key's order, and a Failed one without an
 * error in no list of Failed ones, though it blocks its key: all are set right. What a key has then in front is the
 * repair's to see.
 */
export function normaliseInbox(names: Names): string {
  const ended = (where: string, order: string): string => `
  SELECT id FROM (
    SELECT id, state FROM ${names.inbox} WHERE processed_at_utc IS NULL AND ${where} ORDER BY ${order} LIMIT ${lookLimit}
  ) AS open WHERE state >= 2`;
  const kinds = [
    ended('next_attempt_at_utc IS NULL AND partition_key IS NULL', 'consumer, message_type, sequence'),
    ended(
      'next_attempt_at_utc IS NOT NULL AND partition_key IS NULL',
      'consumer, message_type, next_attempt_at_utc',
    ),
    ended('partition_key IS NOT NULL', 'consumer, source, partition_key, sequence'),
  ];
  return `
WITH batch AS MATERIALIZED (${kinds.join(' UNION ALL ')} LIMIT ${batchLimit})
UPDATE ${names.inbox} AS i SET processed_at_utc = clock_timestamp(), held = i.state = 3 AND i.partition_key IS NOT NULL,
  last_error = CASE WHEN i.state = 2 THEN NULL ELSE coalesce(i.last_error, 'ended by another program, without a reason') END
FROM batch AS b WHERE i.id = b.id AND i.state >= 2 AND i.processed_at_utc IS NULL`;
}

/**
 * A page of keys behind the place (`$1`–`$3`), with whether the key's row says something else than its rows do. Keys with
 * a running lease are left alone: their holder sets them right.
 */
export function checkKeys(names: Names): string {
  const identity = keyIdentity.join(', ');
  return `
SELECT k.consumer, k.source, k.partition_key,
  k.locked_until_utc <= now() AND (h.id IS NULL OR h.sequence IS DISTINCT FROM k.head_sequence OR h.message_type <> k.head_type
    OR (h.state = 3) <> k.blocked OR (h.state <> 3 AND h.next_attempt_at_utc IS DISTINCT FROM k.next_attempt_at_utc)) AS wrong
FROM (
  SELECT * FROM ${names.keys} WHERE (${identity}) > ($1, $2, $3) ORDER BY ${identity} LIMIT ${batchLimit}
) AS k LEFT JOIN LATERAL (${headOf(names, 'k')}) AS h ON true
ORDER BY ${keyIdentity.map((column) => `k.${column}`).join(', ')}`;
}

/**
 * A page of the keys that unfinished rows have, behind the place (`$1`–`$3`), by a loose scan; `missing` where the key
 * has no row of its own, so that no claim would find it.
 */
export function strandedKeys(names: Names): string {
  const identity = keyIdentity.map((column) => `i.${column}`).join(', ');
  const first = (place: string): string => `
    SELECT i.id, ${identity} FROM ${names.inbox} AS i
    WHERE ${standing('i')} AND (${identity}) > (${place})
    ORDER BY ${identity}, i.sequence LIMIT 1`;
  return `
WITH RECURSIVE firsts AS (
  (${first('$1::text, $2::text, $3::text')})
  UNION ALL
  SELECT n.* FROM firsts AS f CROSS JOIN LATERAL (${first('f.consumer, f.source, f.partition_key')}) AS n
), page AS MATERIALIZED (SELECT * FROM firsts LIMIT ${batchLimit})
SELECT p.id, p.consumer, p.source, p.partition_key, k.consumer IS NULL AS missing
FROM page AS p LEFT JOIN ${names.keys} AS k ON ${sameKey('k', 'p')}
ORDER BY p.consumer, p.source, p.partition_key`;
}

/** Notes a worker's successful cycle, at most once in ten seconds. `$1` worker. */
export function recordCycle(names: Names): string {
  return `
INSERT INTO ${names.workers} AS w (worker, last_cycle_at_utc) VALUES ($1, clock_timestamp())
ON CONFLICT (worker) DO UPDATE SET last_cycle_at_utc = excluded.last_cycle_at_utc
WHERE w.last_cycle_at_utc <= excluded.last_cycle_at_utc - interval '10 seconds'`;
}

/**
 * Relays with the age of their last cycle, the freshest first. A relay looks at the tables on a schedule, so its silence
 * says something; what only answers events, like ingest, may be silent for days.
 */
export function relayAges(names: Names): string {
  return `
SELECT worker, floor(extract(epoch FROM now() - last_cycle_at_utc))::float8 AS age
FROM ${names.workers} WHERE worker LIKE 'outbox-relay%' ORDER BY last_cycle_at_utc DESC LIMIT 100`;
}

/** Forgets workers that were taken out of service. */
export function forgetWorkers(names: Names): string {
  return `DELETE FROM ${names.workers} WHERE last_cycle_at_utc < now() - interval '30 days'`;
}
