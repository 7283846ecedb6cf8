import type pg from 'pg';
import { defaults } from '../../shared/delivery/defaults.ts';
import type {
  ClaimRequest,
  InboxStore,
  NewInboxRow,
  TransactionLimits,
} from '../../shared/store/inbox-store.ts';
import { connect, type PostgresDatabase } from '../../shared/store/postgres/connections.ts';
import { postgresInboxStore } from '../../shared/store/postgres/inbox-store.ts';
import type { PostgresTables } from '../../shared/store/postgres/names.ts';
import { createMigratedDatabase, type MigratedDatabase } from './migrated.ts';

/** A migrated database with an inbox store over it. */
export interface InboxFixture extends MigratedDatabase {
  readonly inboxDatabase: PostgresDatabase;
  readonly store: InboxStore<pg.PoolClient>;
  /** Rows of a query, for looking at the tables. */
  rows(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
}

/** Creates a database of the file's own, with a store. */
export async function createInbox(
  settings: Record<string, string> = {},
  tables: PostgresTables = {},
): Promise<InboxFixture> {
  const migrated = await createMigratedDatabase(settings, tables);
  const inboxDatabase = connect({ url: migrated.url }, { max: 16 });
  return {
    ...migrated,
    inboxDatabase,
    store: postgresInboxStore(inboxDatabase, migrated.tables),
    drop: async () => {
      await inboxDatabase.end();
      await migrated.drop();
    },
    rows: async (text, values = []) => (await migrated.pool.query(text, values)).rows,
  };
}

let made = 0;

/** A row to ingest, with an id of its own. */
export function inboxRow(fields: Partial<NewInboxRow> = {}): NewInboxRow {
  return {
    consumer: '',
    source: 'shop',
    externalMessageId: `m${++made}`,
    messageType: 'order.placed',
    payload: '{"orderId":"1"}',
    headers: null,
    correlationId: null,
    partitionKey: null,
    maxRetries: 5,
    failedReason: null,
    ...fields,
  };
}

/** A claim of `order.placed`. */
export function claimRequest(fields: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    consumer: '',
    messageType: 'order.placed',
    limit: defaults.batchSize,
    maxBytes: defaults.claimBytes,
    leaseMs: 30_000,
    onFailedKey: 'block',
    ...fields,
  };
}

export const limits: TransactionLimits = { idleMs: 30_000, lockMs: 10_000, statementMs: 10_000 };
