import type { LocalSystem } from '../system.ts';
import type { Counting } from './counting.ts';

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

/** Counts what is still on its way. */
export async function unfinished(database: Counting, { sqs, queues }: LocalSystem): Promise<Unfinished> {
  const rows = await database.unfinished();
  const depths = await Promise.all([queues.invoicing, queues.emails].map((queue) => sqs.depth(queue)));
  const queued = depths.reduce((sum, depth) => sum + depth.ready + depth.delayed + depth.inFlight, 0);
  return { outbox: rows[0]?.outbox ?? 0, inbox: rows[0]?.inbox ?? 0, queued };
}

/** Counts everything anew, from the tables and the queues alone. */
export async function tally(database: Counting, system: LocalSystem): Promise<Tally> {
  const { sqs, queues } = system;
  const effects = async (table: 'invoices' | 'emails', alive: readonly string[], dead: readonly string[]) => {
    const rows = await database.effects(table, alive, dead);
    return rows[0] as Effects;
  };
  const invoicingDead = await sqs.bodies(queues.invoicingDead);
  const emailsDead = await sqs.bodies(queues.emailsDead);
  const invoices = await effects('invoices', await sqs.bodies(queues.invoicing), invoicingDead);
  const emails = await effects('emails', await sqs.bodies(queues.emails), emailsDead);
  const [counts] = await database.counts();
  if (counts === undefined) throw new Error('the counts were not answered');
  const left = await unfinished(database, system);
  const failures = await database.failures();
  return {
    ...counts,
    invoices,
    emails,
    failed: counts.failed + invoicingDead.length + emailsDead.length,
    pending: left.outbox + left.inbox + left.queued,
    failures,
  };
}
