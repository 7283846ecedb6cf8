import type { Names } from '../names.ts';
import { oneMore } from './counting.ts';
import {
  chosenFrom,
  claimedColumns,
  claimSet,
  doomed,
  killedReason,
  notPaused,
  suspect,
} from './inbox-claim.ts';
import { headOf, sameKey } from './inbox-keys.ts';

/**
 * First step of a keyed claim: leases keys whose head is due and of the type. `$1` consumer, `$2` type, `$3` limit,
 * `$4` lease in ms, `$5` the source where only one is wanted. Keys that wait, or that a Failed head blocks, are in neither index part that is read here.
 * Committed before the heads are read, so that no other claim, and nobody with an older snapshot, has the key meanwhile.
 */
export function leaseKeys(names: Names, { oneSource = false } = {}): string {
  const candidates = (due: string, order: string): string => `
  SELECT ctid AS place_on_disk, head_sequence
  FROM ${names.keys}
  WHERE consumer = $1 AND head_type = $2 AND NOT blocked AND ${due} AND locked_until_utc <= now()${oneSource ? ' AND source = $5' : ''} AND ${notPaused(names)}
  ORDER BY ${order} LIMIT $3 FOR UPDATE SKIP LOCKED`;
  return `
WITH ready AS MATERIALIZED (${candidates('next_attempt_at_utc IS NULL', 'head_sequence')}
), come AS MATERIALIZED (${candidates('next_attempt_at_utc <= now()', 'next_attempt_at_utc')}
), chosen AS MATERIALIZED (
  SELECT * FROM (SELECT * FROM ready UNION ALL SELECT * FROM come) AS f ORDER BY head_sequence LIMIT $3
)
UPDATE ${names.keys} AS k
SET lock_token = gen_random_uuid(), locked_until_utc = clock_timestamp() + $4 * interval '1 millisecond'
FROM chosen AS c WHERE k.ctid = c.place_on_disk
RETURNING k.source, k.partition_key, k.lock_token AS token`;
}

/**
 * Second step, in a snapshot of its own: reads the leased keys' true heads and claims those that are due and of the type.
 * `$1` consumer, `$2` type, `$3` sources, `$4` keys, `$5` tokens, `$6` bytes, `$7` max_retries or null, `$8` leave
 * suspects out, `$9` limit. The message gets the key's token and end, so that the two leases are one.
 *
 * Answers each key still leased with its verdict: `claimed` with the message; `freed` where it was more than may be taken,
 * and is free again; `doomed` and `other`, where the key's row must be set right under its lock (`refreshKeys`): never
 * here, since a row could be committed between this statement's snapshot and a deletion of its key.
 */
export function claimHeads(names: Names): string {
  return `
WITH mine AS MATERIALIZED (
  SELECT k.consumer, k.source, k.partition_key, k.lock_token AS token, k.locked_until_utc AS leased_until
  FROM unnest($3::text[], $4::text[], $5::uuid[]) AS g (source, partition_key, token)
  CROSS JOIN LATERAL (
    SELECT * FROM ${names.keys} AS k
    WHERE k.consumer = $1 AND k.source = g.source AND k.partition_key = g.partition_key LIMIT 1
  ) AS k
  WHERE k.lock_token = g.token AND k.locked_until_utc > clock_timestamp()
), heads AS MATERIALIZED (
  SELECT m.*, h.*, ${suspect('h')} AS suspect,
    coalesce(h.message_type = $2 AND (h.next_attempt_at_utc IS NULL OR h.next_attempt_at_utc <= now())
      AND (h.state = 0 OR (h.state = 1 AND (h.locked_until_utc IS NULL OR h.locked_until_utc <= clock_timestamp()))), false) AS due,
    coalesce(${doomed('h', '$7::int')}, false) AS doomed
  FROM mine AS m LEFT JOIN LATERAL (${headOf(names, 'm')}) AS h ON true
), live AS (
  SELECT * FROM heads WHERE due AND NOT doomed AND NOT ($8 AND suspect)
), chosen AS MATERIALIZED (
  ${chosenFrom('live', '$9', '$6')}
), claimed AS (
  UPDATE ${names.inbox} AS i SET ${claimSet('$7::int')}, lock_token = c.token, locked_until_utc = c.leased_until
  FROM chosen AS c
  WHERE i.id = c.id AND i.processed_at_utc IS NULL
    AND (i.state = 0 OR (i.state = 1 AND (i.locked_until_utc IS NULL OR i.locked_until_utc <= clock_timestamp())))
  RETURNING ${claimedColumns}, c.alone
), freed AS (
  UPDATE ${names.keys} AS k SET lock_token = NULL, locked_until_utc = '-infinity'
  FROM heads AS h
  WHERE ${sameKey('k', 'h')} AND k.lock_token = h.token AND h.due AND NOT h.doomed
    AND NOT EXISTS (SELECT FROM chosen AS c WHERE c.id = h.id)
  RETURNING k.source, k.partition_key
)
SELECT h.source AS key_source, h.partition_key AS key, h.token, h.id AS head_id,
  CASE WHEN c.id IS NOT NULL THEN 'claimed' WHEN f.source IS NOT NULL THEN 'freed'
       WHEN h.due AND h.doomed THEN 'doomed' ELSE 'other' END AS verdict, c.*
FROM heads AS h
LEFT JOIN claimed AS c ON c.id = h.id
LEFT JOIN freed AS f ON f.source = h.source AND f.partition_key = h.partition_key
ORDER BY c.sequence, c.id`;
}

/**
 * Ends heads that used up their attempts by losing leases: `$1` ids, `$2` whether their keys wait for a person, `$3` the
 * handler's own max_retries or null. Under the keys' locks, and only while nobody has claimed them again.
 */
export function endDoomed(names: Names): string {
  return `
UPDATE ${names.inbox} AS i SET state = 3, processed_at_utc = clock_timestamp(), last_error = ${killedReason}, held = $2,
  lock_token = NULL, locked_until_utc = NULL, lost_leases = ${oneMore('i.lost_leases')}
WHERE i.id = ANY ($1::uuid[]) AND ${doomed('i', '$3::int')} AND (i.locked_until_utc IS NULL OR i.locked_until_utc <= clock_timestamp())
RETURNING i.id`;
}
