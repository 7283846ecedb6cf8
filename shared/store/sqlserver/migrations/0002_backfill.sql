-- What rows of before Relaybox lack: a place in the order, a bucket, and an end where another program wrote none.
-- They are listed once, in one read, so that each batch costs the same however big the table is. Batches commit one by
-- one, and are small enough never to ask for a table lock; an interrupted run finds done what was done.

-- step: list old rows
IF OBJECT_ID({{backfill_literal}}) IS NULL
BEGIN
  CREATE TABLE {{backfill}} (
    [Task]   INT              NOT NULL,
    [Number] BIGINT           NOT NULL,
    [Id]     UNIQUEIDENTIFIER NOT NULL,
    PRIMARY KEY CLUSTERED ([Task], [Number])
  );
  INSERT INTO {{backfill}} ([Task], [Number], [Id])
  SELECT 1, ROW_NUMBER() OVER (ORDER BY [CreatedAtUtc], [Id]), [Id] FROM {{outbox}}
  WHERE ([Sequence] IS NULL OR [Bucket] IS NULL OR [Held] IS NULL) AND [State] NOT IN (2, 4);
  INSERT INTO {{backfill}} ([Task], [Number], [Id])
  SELECT 2, ROW_NUMBER() OVER (ORDER BY [CreatedAtUtc], [Id]), [Id] FROM {{inbox}}
  WHERE ([Sequence] IS NULL OR [Consumer] IS NULL OR [Held] IS NULL OR [LostLeases] IS NULL) AND [State] NOT IN (2, 4);
  INSERT INTO {{backfill}} ([Task], [Number], [Id])
  SELECT 3, ROW_NUMBER() OVER (ORDER BY [Id]), [Id] FROM {{outbox}}
  WHERE [ProcessedAtUtc] IS NULL AND [State] IN (2, 3, 4);
  INSERT INTO {{backfill}} ([Task], [Number], [Id])
  SELECT 4, ROW_NUMBER() OVER (ORDER BY [Id]), [Id] FROM {{inbox}}
  WHERE ([ProcessedAtUtc] IS NULL AND [State] IN (2, 3, 4)) OR ([State] = 3 AND [LastError] IS NULL);
END;

-- step: number old outbox rows, in batches
-- In the order they were made, and below all new ones, whose numbers start at 1.
DECLARE @done BIGINT = 0, @last BIGINT;
SELECT @last = MAX([Number]) FROM {{backfill}} WHERE [Task] = 1;
WHILE @done < @last
BEGIN
  UPDATE o SET [Sequence] = ISNULL(o.[Sequence], b.[Number] - 1000000000000),
    [Bucket] = ISNULL(o.[Bucket], CONVERT(TINYINT, CHECKSUM(NEWID()) & 63)), [Held] = ISNULL(o.[Held], 0)
  FROM {{outbox}} AS o WITH (ROWLOCK) INNER JOIN {{backfill}} AS b ON b.[Id] = o.[Id]
  WHERE b.[Task] = 1 AND b.[Number] > @done AND b.[Number] <= @done + 1000;
  SET @done = @done + 1000;
END;

-- step: number old inbox rows, in batches
DECLARE @done BIGINT = 0, @last BIGINT;
SELECT @last = MAX([Number]) FROM {{backfill}} WHERE [Task] = 2;
WHILE @done < @last
BEGIN
  UPDATE i SET [Sequence] = ISNULL(i.[Sequence], b.[Number] - 1000000000000), [Consumer] = ISNULL(i.[Consumer], N''),
    [Held] = ISNULL(i.[Held], 0), [LostLeases] = ISNULL(i.[LostLeases], 0)
  FROM {{inbox}} AS i WITH (ROWLOCK) INNER JOIN {{backfill}} AS b ON b.[Id] = i.[Id]
  WHERE b.[Task] = 2 AND b.[Number] > @done AND b.[Number] <= @done + 1000;
  SET @done = @done + 1000;
END;

-- step: end old rows, in batches
-- Retention goes by the end, and the list of Failed ones by their error. When the end was isn't known: now, so that
-- nothing is removed earlier than it was promised.
DECLARE @done BIGINT = 0, @last BIGINT;
SELECT @last = MAX([Number]) FROM {{backfill}} WHERE [Task] IN (3, 4);
WHILE @done < @last
BEGIN
  UPDATE o SET [ProcessedAtUtc] = TODATETIMEOFFSET(SYSUTCDATETIME(), 0)
  FROM {{outbox}} AS o WITH (ROWLOCK) INNER JOIN {{backfill}} AS b ON b.[Id] = o.[Id]
  WHERE b.[Task] = 3 AND b.[Number] > @done AND b.[Number] <= @done + 1000
    AND o.[ProcessedAtUtc] IS NULL AND o.[State] IN (2, 3, 4);
  UPDATE i SET [ProcessedAtUtc] = ISNULL(i.[ProcessedAtUtc], TODATETIMEOFFSET(SYSUTCDATETIME(), 0)),
    [LastError] = CASE WHEN i.[State] = 3 THEN ISNULL(i.[LastError], N'Failed before Relaybox') ELSE i.[LastError] END
  FROM {{inbox}} AS i WITH (ROWLOCK) INNER JOIN {{backfill}} AS b ON b.[Id] = i.[Id]
  WHERE b.[Task] = 4 AND b.[Number] > @done AND b.[Number] <= @done + 1000 AND i.[State] IN (2, 3, 4);
  SET @done = @done + 1000;
END;

-- step: forget the list
IF OBJECT_ID({{backfill_literal}}) IS NOT NULL DROP TABLE {{backfill}};
