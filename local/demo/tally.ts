import type pg from 'pg';
import type { LocalSystem } from '../system.ts';

/** One consumer's effects, counted in the tables and queues. The first five add up to the orders, unless a promise is broken. */
export interface Effects {
  /** Orders with their effect. */
  readonly done: number;
  /** Orders whose message is still on its way, or in a consumer's hands. */
  readonly pending: number;
  /** Orders whose message ended in Failed, or in the dead-letter queue. */
  readonly failed: number;
  readonly discarded: number;
  /** Orders without effect whose message is nowhere. */
  readonly lost: number;
  /** Effects that are there a second time. */
  readonly doubled: number;
}

/** A message that ended in Failed, as an operator would find it. */
export interface FailedMessage {
  readonly item: string;
  readonly attempts: number;
  readonly reason: string;
}

/** What the tables say at the end. */
export interface Tally {
  readonly orders: number;
  readonly invoices: Effects;
  readonly emails: Effects;
  /** Rows of invoices and emails, doubles included. */
  readonly invoiceRows: number;
  readonly emailRows: number;
  readonly published: number;
  /** Messages that were taken in: inbox rows and receipts. */
  readonly takenIn: number;
  /** Unfinished messages of any kind, those on the queues included. */
  readonly pending: number;
  /** Failed messages of any kind. */
  readonly failed: number;
  readonly failures: readonly FailedMessage[];
}

/** What is left to do; all zero at the end of the day. */
export interface Unfinished {
  readonly outbox: number;
  readonly inbox: number;
  readonly queued: number;
}

const unfinishedSql = `
  SELECT (SELECT count(*) FROM outbox_messages WHERE state < 2)::int AS outbox,
         (SELECT count(*) FROM inbox_messages  WHERE state < 2)::int AS inbox`;

/** Counts what is still on its way. */
export async function unfinished(database: pg.Pool, { sqs, queues }: LocalSystem): Promise<Unfinished> {
  const { rows } = await database.query<{ outbox: number; inbox: number }>(unfinishedSql);
  const depths = await Promise.all([queues.invoicing, queues.emails].map((queue) => sqs.depth(queue)));
  const queued = depths.reduce((sum, depth) => sum + depth.ready + depth.delayed + depth.inFlight, 0);
  return { outbox: rows[0]?.outbox ?? 0, inbox: rows[0]?.inbox ?? 0, queued };
}

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

type Counts = Pick<Tally, 'orders' | 'invoiceRows' | 'emailRows' | 'published' | 'takenIn' | 'failed'>;

/** Counts everything anew, from the tables and the queues alone. */
export async function tally(database: pg.Pool, system: LocalSystem): Promise<Tally> {
  const { sqs, queues } = system;
  const effects = async (table: 'invoices' | 'emails', alive: readonly string[], dead: readonly string[]) => {
    const { rows } = await database.query<Effects>(effectsSql(table, table === 'invoices'), [alive, dead]);
    return rows[0] as Effects;
  };
  const invoicingDead = await sqs.bodies(queues.invoicingDead);
  const emailsDead = await sqs.bodies(queues.emailsDead);
  const invoices = await effects('invoices', await sqs.bodies(queues.invoicing), invoicingDead);
  const emails = await effects('emails', await sqs.bodies(queues.emails), emailsDead);
  const { rows: counted } = await database.query<Counts>(countsSql);
  const counts = counted[0] as Counts;
  const left = await unfinished(database, system);
  const { rows: failures } = await database.query<FailedMessage>(failuresSql);
  return {
    ...counts,
    invoices,
    emails,
    failed: counts.failed + invoicingDead.length + emailsDead.length,
    pending: left.outbox + left.inbox + left.queued,
    failures,
  };
}
