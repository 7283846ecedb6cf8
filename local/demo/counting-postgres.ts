import pg from 'pg';
import type { Counting } from './counting.ts';

const unfinishedSql = `
  SELECT (SELECT count(*) FROM outbox_messages WHERE state < 2)::int AS outbox,
         (SELECT count(*) FROM inbox_messages  WHERE state < 2)::int AS inbox`;

/**
 * One consumer's effects. An order without one is accounted for by the furthest place in which its message is found;
 * `$1` are the bodies on the consumer's queue, `$2` those on its dead-letter queue. Only the invoices go through the inbox.
 */
const effectsSql = (table: 'invoices' | 'emails', throughInbox: boolean): string => `
  WITH placed AS (
    SELECT o.id, (SELECT count(*) FROM ${table} e WHERE e.order_id = o.id) AS effects,
      (SELECT max(m.state) FROM outbox_messages m
       WHERE m.message_type = 'order.placed' AND position(o.id::text IN m.payload) > 0) AS sent,
      ${throughInbox ? '(SELECT max(i.state) FROM inbox_messages i WHERE position(o.id::text IN i.payload) > 0)' : 'NULL::int'} AS kept,
      EXISTS (SELECT FROM unnest($1::text[]) AS body WHERE position(o.id::text IN body) > 0) AS queued,
      EXISTS (SELECT FROM unnest($2::text[]) AS body WHERE position(o.id::text IN body) > 0) AS dead
    FROM orders o
  ), judged AS (
    SELECT effects, CASE
      WHEN effects > 0 THEN 'done'
      WHEN kept = 3 OR sent = 3 OR dead THEN 'failed'
      WHEN kept = 4 OR sent = 4 THEN 'discarded'
      WHEN kept < 2 OR sent < 2 OR queued THEN 'pending'
      ELSE 'lost' END AS fate
    FROM placed
  )
  SELECT count(*) FILTER (WHERE fate = 'done')::int AS done,
         count(*) FILTER (WHERE fate = 'pending')::int AS pending,
         count(*) FILTER (WHERE fate = 'failed')::int AS failed,
         count(*) FILTER (WHERE fate = 'discarded')::int AS discarded,
         count(*) FILTER (WHERE fate = 'lost')::int AS lost,
         coalesce(sum(greatest(effects - 1, 0)), 0)::int AS doubled
  FROM judged`;

const countsSql = `
  SELECT (SELECT count(*) FROM orders)::int AS orders,
         (SELECT count(*) FROM invoices)::int AS "invoiceRows",
         (SELECT count(*) FROM emails)::int AS "emailRows",
         (SELECT count(*) FROM outbox_messages WHERE state = 2)::int AS published,
         ((SELECT count(*) FROM inbox_messages) + (SELECT count(*) FROM inbox_receipts))::int AS "takenIn",
         ((SELECT count(*) FROM inbox_messages WHERE state = 3) +
          (SELECT count(*) FROM outbox_messages WHERE state = 3))::int AS failed`;

const failuresSql = `
  SELECT o.item, i.retry_count AS attempts, coalesce(i.last_error, '') AS reason
  FROM inbox_messages i JOIN orders o ON position(o.id::text IN i.payload) > 0
  WHERE i.state = 3 ORDER BY i.sequence LIMIT 20`;

/** Counts in a PostgreSQL database. */
export function postgresCounting(url: string): Counting {
  const database = new pg.Pool({ connectionString: url, max: 2 });
  database.on('error', () => undefined);
  const rows = async <Row extends object>(text: string, values: unknown[] = []): Promise<readonly Row[]> =>
    (await database.query<Row>(text, values)).rows;
  return {
    unfinished: () => rows(unfinishedSql),
    counts: () => rows(countsSql),
    effects: (table, alive, dead) => rows(effectsSql(table, table === 'invoices'), [alive, dead]),
    failures: () => rows(failuresSql),
    end: () => database.end(),
  };
}
