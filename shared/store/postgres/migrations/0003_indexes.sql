-- Built concurrently: producers go on inserting meanwhile. One left invalid by an interrupted run is rebuilt.
-- A row's bucket is the hash that PostgreSQL also uses for hash partitions, so it is stable across versions.

-- step: outbox ready, concurrently
-- Rows that are due, in the order they are published. A row that waits or is held isn't in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{outbox_index_ready}} ON {{outbox}}
  (destination, {{bucket}}, sequence)
  WHERE state < 2 AND next_attempt_at_utc IS NULL AND NOT held;

-- step: outbox waiting, concurrently
-- Rows with a time to come back at.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{outbox_index_waiting}} ON {{outbox}}
  (destination, {{bucket}}, next_attempt_at_utc)
  WHERE state < 2 AND next_attempt_at_utc IS NOT NULL AND NOT held;

-- step: outbox blocking, concurrently
-- What later rows of a key must not pass: rows that wait, are held, or are Failed under `block` (held too).
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{outbox_index_blocking}} ON {{outbox}}
  (destination, partition_key, sequence)
  WHERE partition_key IS NOT NULL AND (held OR (state < 2 AND next_attempt_at_utc IS NOT NULL));

-- step: outbox claimed, concurrently
-- Another program's claims, of which the relay respects those that run. Its own rows are never in this state.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{outbox_index_claimed}} ON {{outbox}} (destination, locked_until_utc)
  WHERE state = 1;

-- step: outbox failed, concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{outbox_index_failed}} ON {{outbox}} (destination, id) WHERE state = 3;

-- step: outbox ended, concurrently
-- For retention: terminal rows, oldest end first.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{outbox_index_ended}} ON {{outbox}} (processed_at_utc)
  WHERE state IN (2, 4);

-- step: inbox identity, concurrently, unless seed identity
-- Two consumers of one event in one database don't swallow each other's copies. Left out while the seed's own
-- unique index (source, external_message_id) stands: its programs may insert with a conflict target on that.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS {{inbox_index_identity}} ON {{inbox}}
  (consumer, source, external_message_id);

-- step: inbox ready, concurrently
-- Unkeyed rows not ended. A claim changes none of these columns, nor one the predicate names: it stays heap-only.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{inbox_index_ready}} ON {{inbox}}
  (consumer, message_type, sequence)
  WHERE processed_at_utc IS NULL AND next_attempt_at_utc IS NULL AND partition_key IS NULL;

-- step: inbox waiting, concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{inbox_index_waiting}} ON {{inbox}}
  (consumer, message_type, next_attempt_at_utc)
  WHERE processed_at_utc IS NULL AND next_attempt_at_utc IS NOT NULL AND partition_key IS NULL;

-- step: inbox key order, concurrently
-- A key's unfinished rows, whatever their type, in the order of arrival; and those Failed ones that block it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{inbox_index_key}} ON {{inbox}}
  (consumer, source, partition_key, sequence)
  WHERE partition_key IS NOT NULL AND (processed_at_utc IS NULL OR held);

-- step: inbox failed, concurrently
-- No predicate of the inbox names `state`: a claim changes it, and would then have to write every index. Failed and
-- Discarded rows are those that ended with an error; whoever reads this repeats the predicate and adds `state = 3`.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{inbox_index_failed}} ON {{inbox}} (consumer, message_type, id)
  WHERE processed_at_utc IS NOT NULL AND last_error IS NOT NULL;

-- step: inbox ended, concurrently
-- For retention, which adds `state IN (2, 4)` and so steps over the few that are Failed.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{inbox_index_ended}} ON {{inbox}} (processed_at_utc)
  WHERE processed_at_utc IS NOT NULL;

-- step: inbox keys due, concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{keys_index_due}} ON {{schema}}.inbox_keys
  (consumer, head_type, head_sequence)
  WHERE NOT blocked AND next_attempt_at_utc IS NULL;

-- step: inbox keys waiting, concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{keys_index_waiting}} ON {{schema}}.inbox_keys
  (consumer, head_type, next_attempt_at_utc)
  WHERE NOT blocked AND next_attempt_at_utc IS NOT NULL;

-- step: inbox receipts age, concurrently
CREATE INDEX CONCURRENTLY IF NOT EXISTS {{receipts_index_age}} ON {{schema}}.inbox_receipts (received_at_utc);
