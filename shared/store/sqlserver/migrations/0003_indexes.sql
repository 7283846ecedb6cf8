-- Built beside running writers where the edition can (Enterprise, Developer; the options say how this run builds them).
-- On Standard and below, writers of a table wait while one of its indexes is built: see docs/engines.md for how long.
-- An index that was interrupted is rolled back as a whole, so there are no invalid ones to find.
-- A filtered index stores what its filter tests: without that SQL Server looks up each row of it for `IS NULL` again,
-- and may not choose it at all. Only the state is left out of the key's: a claim changes it.

-- step: outbox due, index
-- Due at once (no next attempt) in their order, then those with a time to come back at, in its order. All states and
-- held ones are apart, so what is done, waits or is held costs a read nothing, however much of it there is.
IF INDEXPROPERTY(OBJECT_ID({{outbox_literal}}), {{outbox_index_due_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{outbox_index_due}} ON {{outbox}} ([Held], [State], [Destination], [Bucket], [NextAttemptAtUtc], [Sequence])
    INCLUDE ([LockedUntilUtc], [PartitionKey]) WITH ({{online}});

-- step: outbox key, index
-- What later rows of a key must not pass: rows that wait, are held, or are Failed under `block` (held too).
IF INDEXPROPERTY(OBJECT_ID({{outbox_literal}}), {{outbox_index_key_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{outbox_index_key}} ON {{outbox}} ([Destination], [PartitionKey], [Held], [State], [NextAttemptAtUtc], [Sequence])
    INCLUDE ([Bucket]) WITH ({{online}});

-- step: outbox ended, index
-- For retention, oldest end first, and for lists of Failed ones.
IF INDEXPROPERTY(OBJECT_ID({{outbox_literal}}), {{outbox_index_ended_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{outbox_index_ended}} ON {{outbox}} ([State], [ProcessedAtUtc]) INCLUDE ([Destination]) WITH ({{online}});

-- step: inbox identity, index, unless seed identity
-- Two consumers of one event in one database don't swallow each other's copies. Left out while the seed's own unique
-- index (Source, ExternalMessageId) stands: its programs may rely on the error it gives.
IF INDEXPROPERTY(OBJECT_ID({{inbox_literal}}), {{inbox_index_identity_literal}}, 'IndexID') IS NULL
  CREATE UNIQUE INDEX {{inbox_index_identity}} ON {{inbox}} ([Identity]) WITH ({{online}});

-- step: inbox ready, index
-- Unkeyed rows not ended. A claim changes none of these columns, nor one the filter names.
IF INDEXPROPERTY(OBJECT_ID({{inbox_literal}}), {{inbox_index_ready_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{inbox_index_ready}} ON {{inbox}} ([LaneDigest], [Sequence])
    INCLUDE ([ProcessedAtUtc], [NextAttemptAtUtc], [PartitionKey])
    WHERE [ProcessedAtUtc] IS NULL AND [NextAttemptAtUtc] IS NULL AND [PartitionKey] IS NULL WITH ({{online}});

-- step: inbox waiting, index
IF INDEXPROPERTY(OBJECT_ID({{inbox_literal}}), {{inbox_index_waiting_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{inbox_index_waiting}} ON {{inbox}} ([LaneDigest], [NextAttemptAtUtc])
    INCLUDE ([ProcessedAtUtc], [PartitionKey])
    WHERE [ProcessedAtUtc] IS NULL AND [NextAttemptAtUtc] IS NOT NULL AND [PartitionKey] IS NULL WITH ({{online}});

-- step: inbox key order, index
-- A key's rows that are not done, whatever their type, in the order of arrival.
IF INDEXPROPERTY(OBJECT_ID({{inbox_literal}}), {{inbox_index_key_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{inbox_index_key}} ON {{inbox}} ([KeyDigest], [Sequence]) INCLUDE ([Held], [PartitionKey])
    WHERE [PartitionKey] IS NOT NULL AND [State] IN (0, 1, 3) WITH ({{online}});

-- step: inbox failed, index
IF INDEXPROPERTY(OBJECT_ID({{inbox_literal}}), {{inbox_index_failed_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{inbox_index_failed}} ON {{inbox}} ([Consumer], [MessageType], [Id]) WHERE [State] = 3 WITH ({{online}});

-- step: inbox ended, index
-- Without the Failed ones: they stay, the oldest in front, and each batch of retention would go through them all.
IF INDEXPROPERTY(OBJECT_ID({{inbox_literal}}), {{inbox_index_ended_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{inbox_index_ended}} ON {{inbox}} ([ProcessedAtUtc])
    WHERE [ProcessedAtUtc] IS NOT NULL AND [State] IN (2, 4) WITH ({{online}});

-- step: inbox keys due, index
IF INDEXPROPERTY(OBJECT_ID({{keys_literal}}), {{keys_index_due_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{keys_index_due}} ON {{keys}} ([LaneDigest], [HeadSequence])
    INCLUDE ([Blocked], [NextAttemptAtUtc])
    WHERE [Blocked] = 0 AND [NextAttemptAtUtc] IS NULL WITH ({{online}});

-- step: inbox keys waiting, index
IF INDEXPROPERTY(OBJECT_ID({{keys_literal}}), {{keys_index_waiting_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{keys_index_waiting}} ON {{keys}} ([LaneDigest], [NextAttemptAtUtc])
    INCLUDE ([Blocked])
    WHERE [Blocked] = 0 AND [NextAttemptAtUtc] IS NOT NULL WITH ({{online}});

-- step: inbox receipts age, index
IF INDEXPROPERTY(OBJECT_ID({{receipts_literal}}), {{receipts_index_age_literal}}, 'IndexID') IS NULL
  CREATE INDEX {{receipts_index_age}} ON {{receipts}} ([ReceivedAtUtc]) WITH ({{online}});
