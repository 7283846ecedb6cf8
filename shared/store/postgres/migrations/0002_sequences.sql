-- step: sequences
-- The default comes after the column: an identity or a serial column would rewrite the table under an exclusive lock.
CREATE SEQUENCE IF NOT EXISTS {{outbox_sequence}} AS bigint CACHE 1;
ALTER TABLE {{outbox}} ALTER COLUMN sequence SET DEFAULT nextval('{{outbox_sequence_literal}}');
CREATE SEQUENCE IF NOT EXISTS {{inbox_sequence}} AS bigint CACHE 1;
ALTER TABLE {{inbox}} ALTER COLUMN sequence SET DEFAULT nextval('{{inbox_sequence_literal}}');
