import type { Names } from '../names.ts';
import { oneMore } from './counting.ts';
import { paused } from './outbox-predicates.ts';

/** Ids of tried messages that a lane remembers; the newest stay. */
const REMEMBERED = 32;

/**
 * Opens a lane, unless it is open: then neither its pause nor its count changes. `$1` lane, `$2` reason, `$3` seconds,
 * `$4` tried ids. None of the statements here touches a person's columns.
 */
export function openLaneSql(names: Names): string {
  return `
INSERT INTO ${names.lanes} AS l (destination, failures, open_until_utc, opened_at_utc, last_error, tried)
VALUES ($1, 1, ${fromNow('$3')}, clock_timestamp(), $2, ${newest('$4::uuid[]')})
ON CONFLICT (destination) DO UPDATE
SET failures = 1, open_until_utc = excluded.open_until_utc, opened_at_utc = excluded.opened_at_utc,
  last_error = excluded.last_error, tried = excluded.tried, probe_token = NULL, probe_until_utc = NULL
WHERE l.open_until_utc IS NULL
RETURNING true AS opened`;
}

/** Wins the probe of an open lane whose pause is over; one of many, since the row is looked at again under its lock. `$1` lane, `$2` milliseconds. */
export function takeProbeSql(names: Names): string {
  return `
UPDATE ${names.lanes} AS l
SET probe_token = gen_random_uuid(), probe_until_utc = clock_timestamp() + $2::float8 * interval '1 millisecond'
WHERE l.destination = $1 AND l.open_until_utc <= clock_timestamp() AND NOT ${paused('l')}
  AND (l.probe_until_utc IS NULL OR l.probe_until_utc <= clock_timestamp())
RETURNING l.probe_token AS token, l.failures, l.tried`;
}

/** Closes the lane. The last error stays, for whoever asks later what it was. `$1` lane, `$2` token. */
export function probePassedSql(names: Names): string {
  return `
UPDATE ${names.lanes} AS l
SET failures = 0, open_until_utc = NULL, opened_at_utc = NULL, tried = '{}', probe_token = NULL, probe_until_utc = NULL
WHERE ${fence}
RETURNING true AS done`;
}

/** Keeps the lane open for longer, and remembers what was tried. `$1` lane, `$2` token, `$3` reason, `$4` seconds, `$5` tried ids. */
export function probeFailedSql(names: Names): string {
  return `
UPDATE ${names.lanes} AS l
SET failures = ${oneMore('l.failures')}, open_until_utc = ${fromNow('$4')}, last_error = $3,
  tried = ${newest('l.tried || $5::uuid[]')}, probe_token = NULL, probe_until_utc = NULL
WHERE ${fence}
RETURNING true AS done`;
}

/** Gives the probe back. `$1` lane, `$2` token. */
export function probeAbandonedSql(names: Names): string {
  return `UPDATE ${names.lanes} AS l SET probe_token = NULL, probe_until_utc = NULL WHERE ${fence}`;
}

const fence = 'l.destination = $1 AND l.probe_token = $2 AND l.probe_until_utc > clock_timestamp()';

function fromNow(seconds: string): string {
  return `clock_timestamp() + make_interval(secs => ${seconds}::float8)`;
}

/** The newest of an array's distinct ids, in their order. */
function newest(ids: string): string {
  return `ARRAY(SELECT id FROM (
    SELECT id, max(place) AS place FROM unnest(${ids}) WITH ORDINALITY AS t(id, place)
    GROUP BY id ORDER BY place DESC LIMIT ${REMEMBERED}
  ) AS t ORDER BY place)`;
}
