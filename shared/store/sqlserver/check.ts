import { SchemaError } from '../../message/errors.ts';
import {
  lookRefused,
  migrationMissing,
  type SchemaFound,
  type SchemaReport,
  schemaReport,
} from '../schema-check.ts';
import { sqlNumber } from './connection-errors.ts';
import type { Database, DatabaseResult } from './database.ts';
import { migrationFiles } from './migration-files.ts';
import { type Names, quoted } from './names.ts';
import { seedIdentity } from './sql/seed-identity.ts';

export type { SchemaReport } from '../schema-check.ts';

/** A worker's part of the tables, each with the privileges it needs there. */
export type Needs = Readonly<Partial<Record<keyof typeof relations, readonly Privilege[]>>>;

/** On a sequence UPDATE is the right to draw a number. */
type Privilege = 'SELECT' | 'INSERT' | 'UPDATE' | 'DELETE';

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
  outboxSequence: (names: Names) => names.outboxSequence,
  inboxSequence: (names: Names) => names.inboxSequence,
} as const;

const all: readonly Privilege[] = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
const draws: readonly Privilege[] = ['UPDATE'];

/** What each kind of function needs. A producer's transaction is the application's, and so is its check. */
export const needs = {
  producer: { outbox: ['SELECT', 'INSERT'], outboxSequence: draws },
  relay: { outbox: all, outboxArchive: ['SELECT', 'INSERT'], leases: all, lanes: all, workers: all },
  // It also claims and settles: requeued records that it could not read are read again.
  ingest: {
    inbox: ['SELECT', 'INSERT', 'UPDATE'],
    inboxSequence: draws,
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
    outboxSequence: draws,
  },
  consumer: { receipts: ['SELECT', 'INSERT'], outbox: ['SELECT', 'INSERT'], outboxSequence: draws },
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
    outboxSequence: draws,
    inboxSequence: draws,
  },
} as const satisfies Record<string, Needs>;

/** OPENJSON is there from this level on, that of SQL Server 2016, whatever the server's version. */
const LEAST_LEVEL = 130;

/**
 * Looks, in one round trip, whether the tables have this build's version and this login the rights it needs. Throws
 * `SchemaError` naming the migration or the grant that is missing.
 *
 * @param needed e.g. `needs.relay` @default everything
 */
export async function checkSchema(
  database: Database,
  names: Names,
  needed: Needs = needs.maintain,
): Promise<SchemaReport> {
  const { level, databaseName, ...found } = await look(database, names, needed);
  refuseLevel(level, databaseName);
  const index = names.placeholders['inbox_index_identity'];
  return schemaReport(found, {
    plain: names.plain,
    files: migrationFiles,
    createIdentity: `CREATE UNIQUE INDEX ${index} ON ${names.inbox} ([Identity])`,
  });
}

/** Throws where the database behaves as an older server, without OPENJSON. */
export function refuseLevel(level: number, database: string): void {
  if (level >= LEAST_LEVEL) return;
  throw new SchemaError(
    `database ${quoted(database)} is at compatibility level ${level}, and Relaybox needs ${LEAST_LEVEL} (SQL Server 2016): run ALTER DATABASE ${quoted(database)} SET COMPATIBILITY_LEVEL = ${LEAST_LEVEL}, or a higher one`,
  );
}

interface Found extends SchemaFound {
  readonly level: number;
  readonly databaseName: string;
}

async function look(database: Database, names: Names, needed: Needs): Promise<Found> {
  const wanted = Object.entries(needed).flatMap(([name, privileges]) =>
    privileges.map((privilege) => ({ r: relations[name as keyof typeof relations](names), p: privilege })),
  );
  let answer: DatabaseResult;
  try {
    answer = await database.query(checkSql(names), [
      names.inbox,
      names.plain.outboxTable,
      names.plain.inboxTable,
      JSON.stringify(wanted),
    ]);
  } catch (error) {
    const number = sqlNumber(error);
    // Invalid object name.
    if (number === 208) throw migrationMissing(names.plain, migrationFiles[0], { cause: error });
    // No permission on the object.
    if (number === 229) throw lookRefused(error, [`SELECT ON OBJECT::${names.version}`]);
    throw error;
  }
  const [[facts = {}] = [], versions = [], lacking = [], seedIndexes = []] = answer.sets;
  return {
    level: Number(facts['level']),
    databaseName: String(facts['database']),
    versions: versions.map((row) => Number(row['version'])),
    lacking: lacking.map((row) => String(row['grant'])),
    login: quoted(String(facts['login'])),
    seedIdentity: seedIndexes.length > 0,
    identity: Number(facts['identity']) > 0,
  };
}

/** HAS_PERMS_BY_NAME answers null for what isn't there; the version tells that better. */
function checkSql(names: Names): string {
  return `
SELECT USER_NAME() AS [login], DB_NAME() AS [database],
  (SELECT d.[compatibility_level] FROM sys.databases AS d WHERE d.[database_id] = DB_ID()) AS [level],
  (SELECT COUNT(*) FROM sys.indexes AS x
   JOIN sys.index_columns AS c ON c.[object_id] = x.[object_id] AND c.[index_id] = x.[index_id] AND c.[is_included_column] = 0
   JOIN sys.columns AS n ON n.[object_id] = c.[object_id] AND n.[column_id] = c.[column_id] AND n.[name] = N'Identity'
   WHERE x.[object_id] = OBJECT_ID(@p1) AND x.[is_unique] = 1 AND x.[is_disabled] = 0 AND x.[has_filter] = 0
     AND 1 = (SELECT COUNT(*) FROM sys.index_columns AS k WHERE k.[object_id] = x.[object_id] AND k.[index_id] = x.[index_id] AND k.[is_included_column] = 0)) AS [identity];
SELECT v.[Version] AS [version] FROM ${names.version} AS v
WHERE v.[Step] = N'complete' AND v.[OutboxTable] = @p2 AND v.[InboxTable] = @p3;
SELECT w.[p] + N' ON OBJECT::' + w.[r] AS [grant]
FROM OPENJSON(@p4) WITH ([p] NVARCHAR(20) '$.p', [r] NVARCHAR(600) '$.r') AS w
WHERE HAS_PERMS_BY_NAME(w.[r], 'OBJECT', w.[p]) = 0;
${seedIdentity};`;
}
