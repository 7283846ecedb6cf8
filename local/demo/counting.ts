import type { EngineName } from '../database.ts';
import type { Effects, FailedMessage, Tally, Unfinished } from './tally.ts';

/** What the tally asks of the tables, in either engine's words. */
export interface Counting {
  unfinished(): Promise<readonly Pick<Unfinished, 'outbox' | 'inbox'>[]>;
  counts(): Promise<
    readonly Pick<Tally, 'orders' | 'invoiceRows' | 'emailRows' | 'published' | 'takenIn' | 'failed'>[]
  >;
  /** Of the bodies that are on the consumer's queue and on its dead-letter queue. */
  effects(
    table: 'invoices' | 'emails',
    alive: readonly string[],
    dead: readonly string[],
  ): Promise<readonly Effects[]>;
  failures(): Promise<readonly FailedMessage[]>;
  end(): Promise<void>;
}

/** Counts in the database of a run. */
export async function openCounting(url: string, engine: EngineName): Promise<Counting> {
  if (engine === 'sqlserver') {
    const { sqlServerCounting } = await import('./counting-sqlserver.ts');
    return sqlServerCounting(url);
  }
  const { postgresCounting } = await import('./counting-postgres.ts');
  return postgresCounting(url);
}
