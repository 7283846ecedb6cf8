import { bucketOf, type Names } from '../names.ts';
import { standing } from './inbox-keys.ts';
import { ready } from './outbox-predicates.ts';

/** How many rows a check looks at. */
const lookLimit = 5000;

/** Indexes that are there but invalid (`$1::text[]` tables), or not there at all (`$2::text[]` qualified names). */
export const brokenIndexes = `
SELECT c.oid::regclass::text AS name, 'invalid' AS fault FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid IN (SELECT to_regclass(t)::oid FROM unnest($1::text[]) AS t) AND NOT i.indisvalid
UNION ALL
SELECT n, 'missing' FROM unnest($2::text[]) AS n WHERE to_regclass(n) IS NULL
ORDER BY 1`;

/**
 * Traces of another program's outbox worker. Relaybox never sets a row of the outbox to Processing, and ends none with a
 * `locked_until_utc`: `claimed` are rows under such a claim now, `published` ones that ended with one in the last hour.
 */
export function foreignWorker(names: Names): string {
  return `
SELECT
  (SELECT count(*) FROM (
    SELECT locked_until_utc FROM ${names.outbox} WHERE state = 1 LIMIT ${lookLimit}
  ) AS s WHERE locked_until_utc > now()) AS claimed,
  (SELECT count(*) FROM (
    SELECT state, locked_until_utc FROM ${names.outbox}
    WHERE state IN (2, 4) AND processed_at_utc > now() - interval '1 hour' ORDER BY processed_at_utc DESC LIMIT ${lookLimit}
  ) AS s WHERE state = 2 AND locked_until_utc IS NOT NULL) AS published`;
}

/** Unfinished outbox rows without a place in the order: the ends of the buckets' parts of the index, lane by lane. `$1` lanes. */
export function unnumbered(names: Names): string {
  return `
SELECT count(*) AS count FROM unnest($1::text[]) AS l(destination) CROSS JOIN generate_series(0, 63) AS b CROSS JOIN LATERAL (
  SELECT 1 FROM ${names.outbox} AS o
  WHERE o.destination = l.destination AND ${bucketOf('o')} = b AND ${ready('o')} AND o.sequence IS NULL LIMIT 100
) AS s`;
}

/** Keyed inbox rows whose key has no row, among the first keys. */
export function keysMissing(names: Names): string {
  return `
SELECT count(*) AS count FROM (
  SELECT i.consumer, i.source, i.partition_key FROM ${names.inbox} AS i WHERE ${standing('i')} LIMIT ${lookLimit}
) AS i
WHERE NOT EXISTS (SELECT FROM ${names.keys} AS k
  WHERE k.consumer = i.consumer AND k.source = i.source AND k.partition_key = i.partition_key)`;
}

/**
 * What keeps vacuum from removing dead rows: old transactions, prepared ones, replication slots. `hidden` counts sessions
 * of other users that this user may not look at.
 */
export const oldSnapshots = `
SELECT coalesce(json_agg(json_build_object('pid', pid, 'user', usename, 'application', application_name, 'state', state,
    'seconds', floor(extract(epoch FROM clock_timestamp() - xact_start))) ORDER BY xact_start)
    FILTER (WHERE xact_start < clock_timestamp() - interval '5 minutes' AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)), '[]') AS old,
  count(*) FILTER (WHERE query = '<insufficient privilege>') AS hidden,
  (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database() AND prepared < clock_timestamp() - interval '5 minutes') AS prepared,
  (SELECT coalesce(json_agg(slot_name), '[]') FROM pg_replication_slots
    WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL)) AS slots
FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;

/** How vacuum does on the tables (`$1::text[]`), and whether it is on. */
export const vacuum = `
SELECT c.oid::regclass::text AS name, current_setting('autovacuum')::boolean AS on,
  coalesce(array_to_string(c.reloptions, ',') ~ 'autovacuum_enabled=(false|off|0|no)', false) AS disabled,
  s.n_dead_tup AS dead, s.n_live_tup AS live,
  floor(extract(epoch FROM now() - greatest(s.last_vacuum, s.last_autovacuum)))::float8 AS vacuumed_seconds
FROM unnest($1::text[]) AS t JOIN pg_class AS c ON c.oid = to_regclass(t)
LEFT JOIN pg_stat_user_tables AS s ON s.relid = c.oid`;

/** How this very connection reached the server. */
export const connection = `
SELECT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS ssl,
  coalesce(inet_server_addr() IS NULL OR host(inet_server_addr()) ~ '^(127\\.|::1$)', true) AS local,
  pg_is_in_recovery() AS standby, current_setting('server_version_num')::int AS version,
  current_setting('max_connections')::int AS max_connections,
  (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
  session_user AS login,
  (SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_isolation') AS isolation`;
