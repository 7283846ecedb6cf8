import { lookRefused, migrationMissing, type SchemaReport, schemaReport } from '../schema-check.ts';
import { sqlState } from './connection-errors.ts';
import type { Database } from './database.ts';
import { migrationFiles } from './migration-files.ts';
import type { Names } from './names.ts';

export type { SchemaReport } from '../schema-check.ts';

/** A worker's part of the tables, each with the privileges it needs there. */
export type Needs = Readonly<Partial<Record<keyof typeof relations, readonly Privilege[]>>>;

type Privilege = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE' | 'USAGE';

const relations = {
  outbox: (names: Names) => names.outbox,
  outboxArchive: (names: Names) => names.outboxArchive,
  inbox: (names: Names) => names.inbox,
  leases: (names: Names) => names.leases,
  lanes: (names: Names) => names.lanes,
  keys: (names: Names) => names.keys,
  inboxLanes: (names: Names) => names.inboxLanes,
  receipts: (names: Names) => names.receipts,
  workers: (names: Names) => names.workers,
  outboxSequence: (names: Names) => names.placeholders['outbox_sequence'] ?? '',
  inboxSequence: (names: Names) => names.placeholders['inbox_sequence'] ?? '',
} as const;

const all: readonly Privilege[] = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];

/** What each kind of function needs. A producer's transaction is the application's, and so is its check. */
export const needs = {
  producer: { outbox: ['SELECT', 'INSERT'], outboxSequence: ['USAGE'] },
  relay: { outbox: all, outboxArchive: ['INSERT'], leases: all, lanes: all, workers: all },
  // It also claims and settles: requeued records that it could not read are read again.
  ingest: {
    inbox: ['SELECT', 'INSERT', 'UPDATE'],
    inboxSequence: ['USAGE'],
    keys: all,
    inboxLanes: all,
    workers: all,
  },
  handler: {
    inbox: ['SELECT', 'UPDATE'],
    keys: all,
    inboxLanes: all,
    workers: all,
    outbox: ['SELECT', 'INSERT'],
    outboxSequence: ['USAGE'],
  },
  consumer: { receipts: ['SELECT', 'INSERT'], outbox: ['SELECT', 'INSERT'], outboxSequence: ['USAGE'] },
  maintain: {
    outbox: all,
    outboxArchive: all,
    inbox: all,
    leases: all,
    lanes: all,
    keys: all,
    inboxLanes: all,
    receipts: all,
    workers: all,
    outboxSequence: ['USAGE'],
    inboxSequence: ['USAGE'],
  },
} as const satisfies Record<string, Needs>;

/**
 * Looks, in one query, whether the tables have this build's version and this login the rights it needs. Throws
 * `SchemaError` naming the migration or the grant that is missing.
 *
 * @param needed e.g. `needs.relay` @default everything
 */
export async function checkSchema(
  database: Database,
  names: Names,
  needed: Needs = needs.maintain,
): Promise<SchemaReport> {
  const wanted = wantedRights(names, needed);
  const row = await look(database, names, wanted);
  const found = {
    versions: (row['versions'] as number[] | null) ?? [],
    lacking: (row['lacking'] as string[] | null) ?? [],
    login: `"${row['login']}"`,
    seedIdentity: row['seed_identity'] === true,
    identity: row['identity'] === true,
  };
  const index = names.placeholders['inbox_index_identity'];
  return schemaReport(found, {
    plain: names.plain,
    files: migrationFiles,
    createIdentity: `CREATE UNIQUE INDEX CONCURRENTLY ${index} ON ${names.inbox} (consumer, source, external_message_id)`,
  });
}

interface Right {
  readonly kind: 'TABLE' | 'SEQUENCE';
  readonly relation: string;
  readonly privilege: Privilege;
}

function wantedRights(names: Names, needed: Needs): Right[] {
  return Object.entries(needed).flatMap(([name, privileges]) => {
    const relation = relations[name as keyof typeof relations](names);
    const kind = name.endsWith('Sequence') ? 'SEQUENCE' : 'TABLE';
    return privileges.map((privilege) => ({ kind, relation, privilege }) as const);
  });
}

async function look(
  database: Database,
  names: Names,
  wanted: readonly Right[],
): Promise<Record<string, unknown>> {
  try {
    const { rows } = await database.query(checkSql(names), [
      names.plain.outboxTable,
      names.plain.inboxTable,
      JSON.stringify(wanted),
      names.inbox,
      `${names.schema}.${names.placeholders['inbox_index_identity']}`,
    ]);
    return rows[0] ?? {};
  } catch (error) {
    const state = sqlState(error);
    // undefined_table, invalid_schema_name
    if (state === '42P01' || state === '3F000') {
      throw migrationMissing(names.plain, migrationFiles[0], { cause: error });
    }
    if (state === '42501') {
      throw lookRefused(error, [`USAGE ON SCHEMA ${names.schema}`, `SELECT ON TABLE ${names.version}`]);
    }
    throw error;
  }
}

/** `has_…_privilege` answers null for a relation that isn't there; the version tells that better. */
function checkSql(names: Names): string {
  return `
SELECT current_user AS login,
  (SELECT array_agg(version) FROM ${names.version}
   WHERE step = 'complete' AND outbox_table = $1 AND inbox_table = $2) AS versions,
  (SELECT array_agg(format('%s ON %s %s', w.privilege, w.kind, w.relation))
   FROM json_to_recordset($3::json) AS w (kind text, relation text, privilege text)
   WHERE NOT CASE w.kind
     WHEN 'SEQUENCE' THEN has_sequence_privilege(to_regclass(w.relation), w.privilege)
     ELSE has_table_privilege(to_regclass(w.relation), w.privilege) END) AS lacking,
  EXISTS (SELECT FROM pg_index i WHERE i.indrelid = to_regclass($4) AND ${seedIdentity}) AS seed_identity,
  EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = to_regclass($5) AND i.indisunique AND i.indisvalid) AS identity`;
}

/** Of a row `i` of pg_index: a unique index on the seed's two columns. */
export const seedIdentity = `i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indnkeyatts = 2
    AND (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a
         WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])) = '{external_message_id,source}'`;
