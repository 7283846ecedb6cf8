-- The seed's two tables with its columns, names and meaning, and ours: all nullable or defaulted, so that programs
-- which know only the seed's columns go on inserting. Safe on a big table: no statement here rewrites one.

-- step: tables
CREATE TABLE IF NOT EXISTS {{outbox}} (
  id                   uuid         PRIMARY KEY,
  destination          varchar(300) NOT NULL,
  message_type         varchar(200) NOT NULL,
  payload              text         NOT NULL,
  headers              jsonb        NULL,
  correlation_id       varchar(200) NULL,
  created_at_utc       timestamptz  NOT NULL,
  next_attempt_at_utc  timestamptz  NULL,
  retry_count          integer      NOT NULL DEFAULT 0,
  max_retries          integer      NOT NULL DEFAULT 5,
  state                integer      NOT NULL DEFAULT 0,
  locked_until_utc     timestamptz  NULL,
  processed_at_utc     timestamptz  NULL,
  last_error           text         NULL
);

CREATE TABLE IF NOT EXISTS {{inbox}} (
  id                   uuid         PRIMARY KEY,
  source               varchar(200) NOT NULL,
  external_message_id  varchar(300) NOT NULL,
  message_type         varchar(200) NOT NULL,
  payload              text         NOT NULL,
  headers              jsonb        NULL,
  correlation_id       varchar(200) NULL,
  created_at_utc       timestamptz  NOT NULL,
  next_attempt_at_utc  timestamptz  NULL,
  retry_count          integer      NOT NULL DEFAULT 0,
  max_retries          integer      NOT NULL DEFAULT 5,
  state                integer      NOT NULL DEFAULT 0,
  locked_until_utc     timestamptz  NULL,
  processed_at_utc     timestamptz  NULL,
  last_error           text         NULL
);

-- step: columns
-- A constant default is kept in the catalog, so none of these rewrites the table (PostgreSQL 11 and later).
ALTER TABLE {{outbox}}
  ADD COLUMN IF NOT EXISTS partition_key varchar(200) NULL,
  ADD COLUMN IF NOT EXISTS sequence      bigint       NULL,
  ADD COLUMN IF NOT EXISTS held          boolean      NOT NULL DEFAULT false;

ALTER TABLE {{inbox}}
  ADD COLUMN IF NOT EXISTS consumer      varchar(200) NOT NULL DEFAULT '',
  ADD COLUMN IF NOT EXISTS partition_key varchar(200) NULL,
  ADD COLUMN IF NOT EXISTS sequence      bigint       NULL,
  ADD COLUMN IF NOT EXISTS lock_token    uuid         NULL,
  -- Leases lost in a row: a row that lost one is claimed alone, and ends Failed only after losing one alone.
  ADD COLUMN IF NOT EXISTS lost_leases   integer      NOT NULL DEFAULT 0,
  -- Set with state 3 where a Failed message blocks its key; off again when a person requeues or discards it.
  ADD COLUMN IF NOT EXISTS held          boolean      NOT NULL DEFAULT false;

-- Room on each page lets a claim's update stay on it, out of the indexes (heap-only).
ALTER TABLE {{outbox}} SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {{inbox}}  SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- step: small tables
-- Who may publish which bucket of which lane. The token is the fence of every later write.
CREATE TABLE IF NOT EXISTS {{schema}}.outbox_leases (
  destination       varchar(300) NOT NULL,
  bucket            smallint     NOT NULL,
  lock_token        uuid         NULL,
  locked_until_utc  timestamptz  NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (destination, bucket)
) WITH (fillfactor = 50);

-- A lane's breaker, and apart from it a person's pause, so that a success on the wire can't undo the latter.
CREATE TABLE IF NOT EXISTS {{schema}}.outbox_lanes (
  destination        varchar(300) PRIMARY KEY,
  failures           integer      NOT NULL DEFAULT 0,
  open_until_utc     timestamptz  NULL,
  last_error         text         NULL,
  opened_at_utc      timestamptz  NULL,
  tried              uuid[]       NOT NULL DEFAULT '{}',
  probe_token        uuid         NULL,
  probe_until_utc    timestamptz  NULL,
  paused_at_utc      timestamptz  NULL,
  paused_until_utc   timestamptz  NULL,
  paused_by          text         NULL,
  paused_reason      text         NULL
) WITH (fillfactor = 50);

-- One row per key that has an unfinished (or, under `block`, a Failed) inbox message, across message types.
-- It names the key's head, so that waiting and blocked keys cost a claim nothing, and is the key's lease.
CREATE TABLE IF NOT EXISTS {{schema}}.inbox_keys (
  consumer             varchar(200) NOT NULL,
  source               varchar(200) NOT NULL,
  partition_key        varchar(200) NOT NULL,
  head_sequence        bigint       NOT NULL,
  head_type            varchar(200) NOT NULL,
  next_attempt_at_utc  timestamptz  NULL,
  blocked              boolean      NOT NULL DEFAULT false,
  lock_token           uuid         NULL,
  locked_until_utc     timestamptz  NOT NULL DEFAULT '-infinity',
  PRIMARY KEY (consumer, source, partition_key)
) WITH (fillfactor = 50);

-- A message type a person has paused in the inbox.
CREATE TABLE IF NOT EXISTS {{schema}}.inbox_lanes (
  consumer           varchar(200) NOT NULL,
  message_type       varchar(200) NOT NULL,
  paused_at_utc      timestamptz  NULL,
  paused_until_utc   timestamptz  NULL,
  paused_by          text         NULL,
  paused_reason      text         NULL,
  -- When a handler last asked for work: a type with due rows and none of late has no handler.
  last_claim_at_utc  timestamptz  NULL,
  PRIMARY KEY (consumer, message_type)
) WITH (fillfactor = 50);

-- What a direct consumer has handled: a digest of consumer, source and message id, each with its length before it.
CREATE TABLE IF NOT EXISTS {{schema}}.inbox_receipts (
  digest            bytea        PRIMARY KEY,
  received_at_utc   timestamptz  NOT NULL DEFAULT clock_timestamp()
);

-- Workers' last successful cycle, for the health answer.
CREATE TABLE IF NOT EXISTS {{schema}}.relaybox_workers (
  worker              varchar(200) PRIMARY KEY,
  last_cycle_at_utc   timestamptz  NOT NULL
) WITH (fillfactor = 50);

-- step: archive
-- Where `afterSuccess: 'archive'` moves published rows.
CREATE TABLE IF NOT EXISTS {{outbox_archive}} (LIKE {{outbox}} INCLUDING DEFAULTS);
