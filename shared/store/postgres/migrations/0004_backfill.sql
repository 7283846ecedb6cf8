-- What rows of before Relaybox lack: a place in the order, and an end where another program wrote none.
-- They are listed once, in one read, so that each batch costs the same however big the table is. Batches commit one
-- by one; an interrupted run starts again at the head of the list, and finds done what was done.

-- step: list old rows
CREATE TABLE IF NOT EXISTS {{schema}}.relaybox_backfill AS
  SELECT 'outbox number' AS task, id, row_number() OVER (ORDER BY created_at_utc, id) AS number
  FROM {{outbox}} WHERE sequence IS NULL AND state NOT IN (2, 4)
  UNION ALL
  SELECT 'inbox number', id, row_number() OVER (ORDER BY created_at_utc, id)
  FROM {{inbox}} WHERE sequence IS NULL AND state NOT IN (2, 4)
  UNION ALL
  SELECT 'outbox end', id, row_number() OVER ()
  FROM {{outbox}} WHERE processed_at_utc IS NULL AND state IN (2, 3, 4)
  UNION ALL
  SELECT 'inbox end', id, row_number() OVER ()
  FROM {{inbox}} WHERE (processed_at_utc IS NULL AND state IN (2, 3, 4)) OR (state = 3 AND last_error IS NULL);
CREATE INDEX IF NOT EXISTS relaybox_backfill_order ON {{schema}}.relaybox_backfill (task, number);

-- step: number old outbox rows, in batches
-- In the order they were made, and below all new ones, whose numbers start at 1. Arrays, since joined to the list
-- itself the planner may read the whole table for each batch.
DO $relaybox$
DECLARE
  done bigint := 0;
  ids uuid[];
  numbers bigint[];
BEGIN
  LOOP
    SELECT array_agg(id), array_agg(number) INTO ids, numbers FROM {{schema}}.relaybox_backfill
    WHERE task = 'outbox number' AND number > done AND number <= done + 1000;
    EXIT WHEN ids IS NULL;
    UPDATE {{outbox}} AS o SET sequence = b.number - 1000000000000
    FROM unnest(ids, numbers) AS b (id, number) WHERE o.id = b.id AND o.sequence IS NULL;
    COMMIT;
    done := done + 1000;
  END LOOP;
END $relaybox$;

-- step: number old inbox rows, in batches
DO $relaybox$
DECLARE
  done bigint := 0;
  ids uuid[];
  numbers bigint[];
BEGIN
  LOOP
    SELECT array_agg(id), array_agg(number) INTO ids, numbers FROM {{schema}}.relaybox_backfill
    WHERE task = 'inbox number' AND number > done AND number <= done + 1000;
    EXIT WHEN ids IS NULL;
    UPDATE {{inbox}} AS i SET sequence = b.number - 1000000000000
    FROM unnest(ids, numbers) AS b (id, number) WHERE i.id = b.id AND i.sequence IS NULL;
    COMMIT;
    done := done + 1000;
  END LOOP;
END $relaybox$;

-- step: end old rows, in batches
-- The indexes of unfinished inbox rows, and retention, go by the end, and the list of Failed ones by their error. When
-- the end was isn't known: now, so that nothing is removed earlier than it was promised.
DO $relaybox$
DECLARE
  done bigint := 0;
  ids uuid[];
BEGIN
  LOOP
    SELECT array_agg(id) INTO ids FROM {{schema}}.relaybox_backfill
    WHERE task = 'outbox end' AND number > done AND number <= done + 1000;
    EXIT WHEN ids IS NULL;
    UPDATE {{outbox}} SET processed_at_utc = clock_timestamp()
    WHERE id = ANY (ids) AND processed_at_utc IS NULL AND state IN (2, 3, 4);
    COMMIT;
    done := done + 1000;
  END LOOP;
  done := 0;
  LOOP
    SELECT array_agg(id) INTO ids FROM {{schema}}.relaybox_backfill
    WHERE task = 'inbox end' AND number > done AND number <= done + 1000;
    EXIT WHEN ids IS NULL;
    UPDATE {{inbox}} SET processed_at_utc = coalesce(processed_at_utc, clock_timestamp()),
      last_error = CASE WHEN state = 3 THEN coalesce(last_error, 'Failed before Relaybox') ELSE last_error END
    WHERE id = ANY (ids) AND state IN (2, 3, 4);
    COMMIT;
    done := done + 1000;
  END LOOP;
END $relaybox$;

-- step: forget the list
DROP TABLE IF EXISTS {{schema}}.relaybox_backfill;
