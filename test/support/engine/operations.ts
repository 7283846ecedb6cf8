import { operate } from '../../../shared/operations/operate.ts';
import type { Responses } from '../../../shared/operations/responses.ts';
import type { Columns, Row } from './gateway.ts';
import type { EngineDatabase } from './test-engine.ts';
import { daysAgo } from './values.ts';

/** What tests of the operators' commands need, over one database. */
export interface Operating {
  /** Sends a request as JSON would bring it. */
  ask<Name extends keyof Responses>(
    request: { readonly command: Name } & Readonly<Record<string, unknown>>,
  ): Promise<Responses[Name]>;
  /** Inserts an outbox row with the given columns; answers its id. */
  row(columns?: Columns<'outbox'>): Promise<string>;
  /** Columns of an outbox row. */
  outboxRow(id: string): Promise<Row<'outbox'>>;
}

/** Makes them. */
export function operatingOn(db: EngineDatabase): Operating {
  return {
    async ask<Name extends keyof Responses>(
      request: { readonly command: Name } & Readonly<Record<string, unknown>>,
    ) {
      return (await operate(db.operations, JSON.parse(JSON.stringify(request)))) as Responses[Name];
    },
    row: (columns = {}) => db.insert('outbox', { payload: '{"secret":"payload"}', ...columns }),
    async outboxRow(id) {
      const [row] = await db.rows('outbox', { id });
      if (row === undefined) throw new Error(`there is no outbox row ${id}`);
      return row;
    },
  };
}

/** Columns of an outbox row that ended in Failed. */
export function failedColumns(columns: Columns<'outbox'> = {}): Columns<'outbox'> {
  return {
    state: 3,
    retry_count: 6,
    processed_at_utc: daysAgo(0),
    last_error: 'the queue refused it',
    ...columns,
  };
}
