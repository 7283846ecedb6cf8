import type { Names } from '../names.ts';
import { iso } from './operations-shared.ts';

const pause = `${iso('paused_at_utc')} AS since, ${iso('paused_until_utc')} AS until, paused_by, paused_reason`;

function columns(names: Names, box: 'outbox' | 'inbox'): { table: string; key: readonly string[] } {
  return box === 'outbox'
    ? { table: names.lanes, key: ['destination'] }
    : { table: names.inboxLanes, key: ['consumer', 'message_type'] };
}

/**
 * A person's pause, beside the breaker's columns and not among them, so that a success on the wire can't undo it.
 * `$1` by, `$2` reason, `$3` seconds or null, then the lane's key.
 */
export function pauseLane(names: Names, box: 'outbox' | 'inbox'): string {
  const { table, key } = columns(names, box);
  return `
INSERT INTO ${table} (paused_by, paused_reason, paused_until_utc, paused_at_utc, ${key.join(', ')})
VALUES ($1, $2, clock_timestamp() + $3::float8 * interval '1 second', clock_timestamp(), ${key.map((_, at) => `$${at + 4}`).join(', ')})
ON CONFLICT (${key.join(', ')}) DO UPDATE SET paused_by = excluded.paused_by, paused_reason = excluded.paused_reason,
  paused_until_utc = excluded.paused_until_utc, paused_at_utc = excluded.paused_at_utc
RETURNING ${pause}`;
}

/** Ends a pause; answers a row only where there was one. The lane's key from `$1` on. */
export function resumeLane(names: Names, box: 'outbox' | 'inbox'): string {
  const { table, key } = columns(names, box);
  return `
UPDATE ${table} AS l SET paused_by = NULL, paused_reason = NULL, paused_until_utc = NULL, paused_at_utc = NULL
FROM (SELECT paused_until_utc IS NULL OR paused_until_utc > clock_timestamp() AS ran FROM ${table}
  WHERE ${key.map((column, at) => `${column} = $${at + 1}`).join(' AND ')}) AS before
WHERE ${key.map((column, at) => `l.${column} = $${at + 1}`).join(' AND ')} AND l.paused_at_utc IS NOT NULL
RETURNING before.ran`;
}
