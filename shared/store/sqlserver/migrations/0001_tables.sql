-- The seed's two tables with its columns, names and meaning, and ours: all nullable or defaulted, so that programs
-- which know only the seed's columns go on inserting. No statement here rewrites a big table, on any edition: what is
-- added to one that is there is nullable, since Standard rewrites every row for NOT NULL with a default.
-- Nothing on the outbox is filtered, nor indexed by a computed column: either would refuse the insert of a session with
-- QUOTED_IDENTIFIER OFF (error 1934), and the outbox is where the application's own transaction inserts.

-- step: sequences
-- Its numbers are the order. The default below draws from it, for programs that don't know of it.
IF OBJECT_ID({{outbox_sequence_literal}}) IS NULL
  CREATE SEQUENCE {{outbox_sequence}} AS BIGINT START WITH 1 INCREMENT BY 1 CACHE 1000;
IF OBJECT_ID({{inbox_sequence_literal}}) IS NULL
  CREATE SEQUENCE {{inbox_sequence}} AS BIGINT START WITH 1 INCREMENT BY 1 CACHE 1000;

-- step: tables
-- A new table is clustered by its order, not by a random id: inserts go to the end, and a batch is neighbours.
IF OBJECT_ID({{outbox_literal}}) IS NULL
BEGIN
  CREATE TABLE {{outbox}} (
    [Id]                UNIQUEIDENTIFIER NOT NULL CONSTRAINT {{outbox_pk}} PRIMARY KEY NONCLUSTERED,
    [Destination]       NVARCHAR(300)    COLLATE {{binary}} NOT NULL,
    [MessageType]       NVARCHAR(200)    COLLATE {{binary}} NOT NULL,
    [Payload]           NVARCHAR(MAX)    NOT NULL,
    [Headers]           NVARCHAR(MAX)    NULL,
    [CorrelationId]     NVARCHAR(200)    NULL,
    [CreatedAtUtc]      DATETIMEOFFSET   NOT NULL,
    [NextAttemptAtUtc]  DATETIMEOFFSET   NULL,
    [RetryCount]        INT              NOT NULL DEFAULT (0),
    [MaxRetries]        INT              NOT NULL DEFAULT (5),
    [State]             INT              NOT NULL DEFAULT (0),
    [LockedUntilUtc]    DATETIMEOFFSET   NULL,
    [ProcessedAtUtc]    DATETIMEOFFSET   NULL,
    [LastError]         NVARCHAR(MAX)    NULL,
    [Sequence]          BIGINT           NULL CONSTRAINT {{outbox_default_sequence}} DEFAULT (NEXT VALUE FOR {{outbox_sequence}})
  );
  CREATE CLUSTERED INDEX {{outbox_index_order}} ON {{outbox}} ([Sequence]);
END;
IF OBJECT_ID({{inbox_literal}}) IS NULL
BEGIN
  CREATE TABLE {{inbox}} (
    [Id]                UNIQUEIDENTIFIER NOT NULL CONSTRAINT {{inbox_pk}} PRIMARY KEY NONCLUSTERED,
    [Source]            NVARCHAR(200)    COLLATE {{binary}} NOT NULL,
    [ExternalMessageId] NVARCHAR(300)    COLLATE {{binary}} NOT NULL,
    [MessageType]       NVARCHAR(200)    COLLATE {{binary}} NOT NULL,
    [Payload]           NVARCHAR(MAX)    NOT NULL,
    [Headers]           NVARCHAR(MAX)    NULL,
    [CorrelationId]     NVARCHAR(200)    NULL,
    [CreatedAtUtc]      DATETIMEOFFSET   NOT NULL,
    [NextAttemptAtUtc]  DATETIMEOFFSET   NULL,
    [RetryCount]        INT              NOT NULL DEFAULT (0),
    [MaxRetries]        INT              NOT NULL DEFAULT (5),
    [State]             INT              NOT NULL DEFAULT (0),
    [LockedUntilUtc]    DATETIMEOFFSET   NULL,
    [ProcessedAtUtc]    DATETIMEOFFSET   NULL,
    [LastError]         NVARCHAR(MAX)    NULL,
    [Sequence]          BIGINT           NULL CONSTRAINT {{inbox_default_sequence}} DEFAULT (NEXT VALUE FOR {{inbox_sequence}})
  );
  CREATE CLUSTERED INDEX {{inbox_index_order}} ON {{inbox}} ([Sequence]);
END;

-- step: columns
IF COL_LENGTH({{outbox_literal}}, N'Sequence') IS NULL ALTER TABLE {{outbox}} ADD [Sequence] BIGINT NULL;
IF COL_LENGTH({{outbox_literal}}, N'PartitionKey') IS NULL
  ALTER TABLE {{outbox}} ADD [PartitionKey] NVARCHAR(200) COLLATE {{binary}} NULL;
IF COL_LENGTH({{outbox_literal}}, N'Bucket') IS NULL ALTER TABLE {{outbox}} ADD [Bucket] TINYINT NULL;
IF COL_LENGTH({{outbox_literal}}, N'Held') IS NULL ALTER TABLE {{outbox}} ADD [Held] BIT NULL;
IF COL_LENGTH({{inbox_literal}}, N'Sequence') IS NULL ALTER TABLE {{inbox}} ADD [Sequence] BIGINT NULL;
IF COL_LENGTH({{inbox_literal}}, N'Consumer') IS NULL
  ALTER TABLE {{inbox}} ADD [Consumer] NVARCHAR(200) COLLATE {{binary}} NULL;
IF COL_LENGTH({{inbox_literal}}, N'PartitionKey') IS NULL
  ALTER TABLE {{inbox}} ADD [PartitionKey] NVARCHAR(200) COLLATE {{binary}} NULL;
IF COL_LENGTH({{inbox_literal}}, N'LockToken') IS NULL ALTER TABLE {{inbox}} ADD [LockToken] UNIQUEIDENTIFIER NULL;
-- Leases lost in a row: a row that lost one is claimed alone, and ends Failed only after losing one alone.
IF COL_LENGTH({{inbox_literal}}, N'LostLeases') IS NULL ALTER TABLE {{inbox}} ADD [LostLeases] INT NULL;
-- Set with state 3 where a Failed message blocks its key; off again when a person requeues or discards it.
IF COL_LENGTH({{inbox_literal}}, N'Held') IS NULL ALTER TABLE {{inbox}} ADD [Held] BIT NULL;

-- step: defaults
IF OBJECT_ID({{outbox_default_sequence_literal}}) IS NULL
  ALTER TABLE {{outbox}} ADD CONSTRAINT {{outbox_default_sequence}} DEFAULT (NEXT VALUE FOR {{outbox_sequence}}) FOR [Sequence];
-- A row without a key may be in any bucket, as long as it stays there. One with a key is where the check below says.
IF OBJECT_ID({{outbox_default_bucket_literal}}) IS NULL
  ALTER TABLE {{outbox}} ADD CONSTRAINT {{outbox_default_bucket}} DEFAULT (CONVERT(TINYINT, CHECKSUM(NEWID()) & 63)) FOR [Bucket];
IF OBJECT_ID({{outbox_default_held_literal}}) IS NULL
  ALTER TABLE {{outbox}} ADD CONSTRAINT {{outbox_default_held}} DEFAULT (0) FOR [Held];
IF OBJECT_ID({{inbox_default_sequence_literal}}) IS NULL
  ALTER TABLE {{inbox}} ADD CONSTRAINT {{inbox_default_sequence}} DEFAULT (NEXT VALUE FOR {{inbox_sequence}}) FOR [Sequence];
IF OBJECT_ID({{inbox_default_consumer_literal}}) IS NULL
  ALTER TABLE {{inbox}} ADD CONSTRAINT {{inbox_default_consumer}} DEFAULT (N'') FOR [Consumer];
IF OBJECT_ID({{inbox_default_lost_leases_literal}}) IS NULL
  ALTER TABLE {{inbox}} ADD CONSTRAINT {{inbox_default_lost_leases}} DEFAULT (0) FOR [LostLeases];
IF OBJECT_ID({{inbox_default_held_literal}}) IS NULL
  ALTER TABLE {{inbox}} ADD CONSTRAINT {{inbox_default_held}} DEFAULT (0) FOR [Held];

-- step: bucket of a key
-- NOCHECK: no row of before has a key, so there is nothing to look at.
IF OBJECT_ID({{outbox_check_bucket_literal}}) IS NULL
  ALTER TABLE {{outbox}} WITH NOCHECK ADD CONSTRAINT {{outbox_check_bucket}}
    CHECK ([PartitionKey] IS NULL OR [Bucket] = {{key_bucket}});

-- step: digests
-- Collations fold case and ignore trailing spaces, a digest of the bytes doesn't. Not persisted: that would rewrite the table.
-- SQL Server writes the expression in the column's place and then looks for the index by it, so there is nothing in it
-- that a query's own conditions could simplify: no CASE (a row without a key has no digest all the same, of null), and
-- ISNULL only over a column that may be null.
IF COL_LENGTH({{inbox_literal}}, N'Identity') IS NULL ALTER TABLE {{inbox}} ADD [Identity] AS {{inbox_identity}};
IF COL_LENGTH({{inbox_literal}}, N'LaneDigest') IS NULL ALTER TABLE {{inbox}} ADD [LaneDigest] AS {{inbox_lane}};
IF COL_LENGTH({{inbox_literal}}, N'KeyDigest') IS NULL ALTER TABLE {{inbox}} ADD [KeyDigest] AS {{inbox_key}};

-- step: small tables
-- Who may publish which bucket of which lane. The token is the fence of every later write.
IF OBJECT_ID({{leases_literal}}) IS NULL
  CREATE TABLE {{leases}} (
    [Destination]     NVARCHAR(300)    COLLATE {{binary}} NOT NULL,
    [Bucket]          TINYINT          NOT NULL,
    [LockToken]       UNIQUEIDENTIFIER NULL,
    [LockedUntilUtc]  DATETIMEOFFSET   NOT NULL DEFAULT ('0001-01-01T00:00:00+00:00'),
    PRIMARY KEY CLUSTERED ([Destination], [Bucket])
  );
-- A lane's breaker, and apart from it a person's pause, so that a success on the wire can't undo the latter.
IF OBJECT_ID({{lanes_literal}}) IS NULL
  CREATE TABLE {{lanes}} (
    [Destination]     NVARCHAR(300)    COLLATE {{binary}} NOT NULL PRIMARY KEY CLUSTERED,
    [Failures]        INT              NOT NULL DEFAULT (0),
    [OpenUntilUtc]    DATETIMEOFFSET   NULL,
    [LastError]       NVARCHAR(MAX)    NULL,
    [OpenedAtUtc]     DATETIMEOFFSET   NULL,
    [Tried]           NVARCHAR(MAX)    NOT NULL DEFAULT (N'[]'),
    [ProbeToken]      UNIQUEIDENTIFIER NULL,
    [ProbeUntilUtc]   DATETIMEOFFSET   NULL,
    [PausedAtUtc]     DATETIMEOFFSET   NULL,
    [PausedUntilUtc]  DATETIMEOFFSET   NULL,
    [PausedBy]        NVARCHAR(MAX)    NULL,
    [PausedReason]    NVARCHAR(MAX)    NULL
  );
-- One row per key that has an unfinished (or, under `block`, a Failed) inbox message, across message types.
-- It names the key's head, so that waiting and blocked keys cost a claim nothing, and is the key's lease.
IF OBJECT_ID({{keys_literal}}) IS NULL
  CREATE TABLE {{keys}} (
    [KeyDigest]         BINARY(32)       NOT NULL PRIMARY KEY CLUSTERED,
    [Consumer]          NVARCHAR(200)    COLLATE {{binary}} NOT NULL,
    [Source]            NVARCHAR(200)    COLLATE {{binary}} NOT NULL,
    [PartitionKey]      NVARCHAR(200)    COLLATE {{binary}} NOT NULL,
    [LaneDigest]        BINARY(32)       NOT NULL,
    [HeadSequence]      BIGINT           NOT NULL,
    [HeadType]          NVARCHAR(200)    COLLATE {{binary}} NOT NULL,
    [NextAttemptAtUtc]  DATETIMEOFFSET   NULL,
    [Blocked]           BIT              NOT NULL DEFAULT (0),
    [LockToken]         UNIQUEIDENTIFIER NULL,
    [LockedUntilUtc]    DATETIMEOFFSET   NOT NULL DEFAULT ('0001-01-01T00:00:00+00:00')
  );
-- A message type a person has paused in the inbox.
IF OBJECT_ID({{inbox_lanes_literal}}) IS NULL
  CREATE TABLE {{inbox_lanes}} (
    [LaneDigest]      BINARY(32)     NOT NULL PRIMARY KEY CLUSTERED,
    [Consumer]        NVARCHAR(200)  COLLATE {{binary}} NOT NULL,
    [MessageType]     NVARCHAR(200)  COLLATE {{binary}} NOT NULL,
    [PausedAtUtc]     DATETIMEOFFSET NULL,
    [PausedUntilUtc]  DATETIMEOFFSET NULL,
    [PausedBy]        NVARCHAR(MAX)  NULL,
    [PausedReason]    NVARCHAR(MAX)  NULL,
    -- When a handler last asked for work: a type with due rows and none of late has no handler.
    [LastClaimAtUtc]  DATETIMEOFFSET NULL
  );
-- What a direct consumer has handled. A known receipt falls out without an error; only Relaybox writes here.
IF OBJECT_ID({{receipts_literal}}) IS NULL
  CREATE TABLE {{receipts}} (
    [Digest]         BINARY(32)     NOT NULL PRIMARY KEY CLUSTERED WITH (IGNORE_DUP_KEY = ON),
    [ReceivedAtUtc]  DATETIMEOFFSET NOT NULL DEFAULT (TODATETIMEOFFSET(SYSUTCDATETIME(), 0))
  );
-- Workers' last successful cycle, for the health answer.
IF OBJECT_ID({{workers_literal}}) IS NULL
  CREATE TABLE {{workers}} (
    [Worker]          NVARCHAR(200)  COLLATE {{binary}} NOT NULL PRIMARY KEY CLUSTERED,
    [LastCycleAtUtc]  DATETIMEOFFSET NOT NULL
  );

-- step: archive
-- Where `afterSuccess: 'archive'` moves published rows.
IF OBJECT_ID({{outbox_archive_literal}}) IS NULL
  CREATE TABLE {{outbox_archive}} (
    [Id]                UNIQUEIDENTIFIER NOT NULL CONSTRAINT {{outbox_archive_pk}} PRIMARY KEY NONCLUSTERED,
    [Destination]       NVARCHAR(300)    COLLATE {{binary}} NOT NULL,
    [MessageType]       NVARCHAR(200)    COLLATE {{binary}} NOT NULL,
    [Payload]           NVARCHAR(MAX)    NOT NULL,
    [Headers]           NVARCHAR(MAX)    NULL,
    [CorrelationId]     NVARCHAR(200)    NULL,
    [CreatedAtUtc]      DATETIMEOFFSET   NOT NULL,
    [NextAttemptAtUtc]  DATETIMEOFFSET   NULL,
    [RetryCount]        INT              NOT NULL,
    [MaxRetries]        INT              NOT NULL,
    [State]             INT              NOT NULL,
    [ProcessedAtUtc]    DATETIMEOFFSET   NULL,
    [LastError]         NVARCHAR(MAX)    NULL,
    [PartitionKey]      NVARCHAR(200)    COLLATE {{binary}} NULL,
    [Sequence]          BIGINT           NULL
  );

-- step: no escalation
-- A table lock taken for a big statement would make every claim wait, or skip everything.
ALTER TABLE {{outbox}} SET (LOCK_ESCALATION = DISABLE);
ALTER TABLE {{inbox}} SET (LOCK_ESCALATION = DISABLE);
ALTER TABLE {{leases}} SET (LOCK_ESCALATION = DISABLE);
ALTER TABLE {{keys}} SET (LOCK_ESCALATION = DISABLE);
