-- The example application's own tables. Nothing here keeps an order from having two invoices or two emails:
-- that there is one of each is Relaybox's doing, and can be checked.
CREATE TABLE IF NOT EXISTS orders (
  id            uuid         PRIMARY KEY,
  customer      text         NOT NULL,
  item          text         NOT NULL,
  amount_cents  integer      NOT NULL,
  placed_at     timestamptz  NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS invoices (
  id            uuid         PRIMARY KEY DEFAULT gen_random_uuid(),
  order_id      uuid         NOT NULL,
  amount_cents  integer      NOT NULL,
  written_at    timestamptz  NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS emails (
  id            uuid         PRIMARY KEY DEFAULT gen_random_uuid(),
  order_id      uuid         NOT NULL,
  recipient     text         NOT NULL,
  written_at    timestamptz  NOT NULL DEFAULT now()
);
