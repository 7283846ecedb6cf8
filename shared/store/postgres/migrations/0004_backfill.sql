-- step: number unfinished outbox rows, in batches
-- Rows of before the sequence get numbers below all new ones, in the order they were made. Repeated until none is left.
WITH batch AS (
  SELECT id FROM {{outbox}}
  WHERE sequence IS NULL AND state < 2
  ORDER BY created_at_utc, id
  LIMIT 5000
), base AS (
  SELECT coalesce((SELECT max(sequence) FROM {{outbox}} WHERE sequence < 0), -1000000000000) AS last
), numbered AS (
  SELECT o.id, b.last + row_number() OVER (ORDER BY o.created_at_utc, o.id) AS number
  FROM {{outbox}} o JOIN batch USING (id) CROSS JOIN base b
)
UPDATE {{outbox}} AS o SET sequence = n.number FROM numbered n WHERE o.id = n.id AND o.sequence IS NULL;
