import { randomUUID } from 'node:crypto';
import { operate } from '../../shared/operations/operate.ts';
import type { Responses } from '../../shared/operations/responses.ts';
import type { OutboxStore } from '../../shared/store/outbox-store.ts';
import { type PostgresOperations, postgresOperations } from '../../shared/store/postgres/operations.ts';
import { postgresOutboxStore } from '../../shared/store/postgres/outbox-store.ts';
import { createInbox, type InboxFixture } from './inbox.ts';

/** A database with both stores and the operators' commands. */
export interface OperationsFixture extends InboxFixture, PostgresOperations {
  readonly outbox: OutboxStore;
  /** Sends a request as JSON would bring it. */
  ask<Name extends keyof Responses>(
    request: { readonly command: Name } & Readonly<Record<string, unknown>>,
  ): Promise<Responses[Name]>;
  /** Inserts an outbox row with the given columns; answers its id. */
  row(columns?: Readonly<Record<string, unknown>>): Promise<string>;
  /** Columns of an outbox row. */
  outboxRow(id: string): Promise<Record<string, unknown>>;
}

/** Creates it, in a database of the file's own. */
export async function createOperations(): Promise<OperationsFixture> {
  const inbox = await createInbox();
  const { pool } = inbox;
  const outbox = postgresOutboxStore(pool, inbox.tables);
  const made = postgresOperations({ source: pool, leases: outbox });
  return {
    ...inbox,
    ...made,
    outbox,
    async ask<Name extends keyof Responses>(
      request: { readonly command: Name } & Readonly<Record<string, unknown>>,
    ) {
      return (await operate(made.operations, JSON.parse(JSON.stringify(request)))) as Responses[Name];
    },
    async row(columns = {}) {
      const all: Record<string, unknown> = {
        id: randomUUID(),
        destination: 'orders',
        message_type: 'order.placed',
        payload: '{"secret":"payload"}',
        created_at_utc: new Date(),
        ...columns,
      };
      const names = Object.keys(all);
      await pool.query(
        `INSERT INTO outbox_messages (${names.join(', ')}) VALUES (${names.map((_, at) => `$${at + 1}`).join(', ')})`,
        Object.values(all),
      );
      return String(all['id']);
    },
    async outboxRow(id) {
      const { rows } = await pool.query('SELECT * FROM outbox_messages WHERE id = $1', [id]);
      return rows[0];
    },
  };
}

/** Columns of a row that ended in Failed. */
export function failedColumns(columns: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    state: 3,
    retry_count: 6,
    processed_at_utc: new Date(),
    last_error: 'the queue refused it',
    ...columns,
  };
}
