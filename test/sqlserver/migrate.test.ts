import { afterAll, beforeAll, expect, test } from 'vitest';
import { SchemaError } from '../../shared/message/errors.ts';
import { checkSchema } from '../../shared/store/sqlserver/check.ts';
import { connect } from '../../shared/store/sqlserver/connections.ts';
import { type MigrationSource, migrate } from '../../shared/store/sqlserver/migrate.ts';
import { migrationSql } from '../../shared/store/sqlserver/migration-sql.ts';
import { migrationSteps } from '../../shared/store/sqlserver/migration-steps.ts';
import { type Names, sqlServerNames } from '../../shared/store/sqlserver/names.ts';
import { sqlServerSeedSchema } from '../support/seed-schema.ts';
import { tcpProxy } from '../support/tcp-proxy.ts';
import { createEmptyDatabase, type EmptyDatabase } from './support/empty.ts';

let db: EmptyDatabase;
let schemas = 0;

beforeAll(async () => {
  db = await createEmptyDatabase();
});
afterAll(() => db.drop());

/** A schema of one test's own. */
function fresh(): Names {
  schemas += 1;
  return sqlServerNames({ schema: `test_${schemas}` });
}

/** The seed's tables, in a schema of one test's own. */
async function seeded(): Promise<Names> {
  const names = fresh();
  await db.batches(`CREATE SCHEMA ${names.schema}`, sqlServerSeedSchema.replaceAll('[dbo]', names.schema));
  return names;
}

/** Everything about a schema that a migration makes: columns with their types, indexes with their columns, sequences. */
async function shape(names: Names): Promise<unknown> {
  const inSchema = 'o.[schema_id] = SCHEMA_ID(@p1)';
  const columns = await db.rows(
    `SELECT o.[name] AS [table], c.[name] AS [column], TYPE_NAME(c.[user_type_id]) AS [type], c.[max_length] AS [length],
       c.[is_nullable] AS [nullable], c.[is_computed] AS [computed], CASE WHEN c.[default_object_id] = 0 THEN 0 ELSE 1 END AS [default]
     FROM sys.columns AS c JOIN sys.objects AS o ON o.[object_id] = c.[object_id]
     WHERE ${inSchema} AND o.[type] = 'U' ORDER BY o.[name], c.[name]`,
    [names.plain.schema],
  );
  const indexes = await db.rows(
    `SELECT o.[name] AS [table], i.[name] AS [index], i.[is_unique] AS [unique], i.[has_filter] AS [filter],
       c.[name] AS [column], k.[key_ordinal] AS [place], k.[is_descending_key] AS [descending]
     FROM sys.indexes AS i JOIN sys.objects AS o ON o.[object_id] = i.[object_id]
     JOIN sys.index_columns AS k ON k.[object_id] = i.[object_id] AND k.[index_id] = i.[index_id]
     JOIN sys.columns AS c ON c.[object_id] = k.[object_id] AND c.[column_id] = k.[column_id]
     WHERE ${inSchema} AND o.[type] = 'U' AND i.[is_primary_key] = 0
     ORDER BY o.[name], i.[name], k.[key_ordinal], c.[name]`,
    [names.plain.schema],
  );
  const sequences = await db.rows(
    'SELECT o.[name] AS [name] FROM sys.sequences AS o WHERE o.[schema_id] = SCHEMA_ID(@p1) ORDER BY 1',
    [names.plain.schema],
  );
  return { columns, indexes, sequences };
}

test('migrating again, and a third time, changes nothing', async () => {
  const names = fresh();
  const first = await migrate(db.database, names);
  expect(first.applied).toEqual(migrationSteps(names).map((step) => `${step.version} ${step.name}`));
  const made = await shape(names);
  for (let run = 0; run < 2; run++) {
    expect(await migrate(db.database, names)).toEqual({ applied: [], pending: [], seedIdentity: false });
  }
  expect(await shape(names)).toEqual(made);
});

test('two at once: one does the work, the other waits for it and finds it done', async () => {
  const names = fresh();
  const reports = await Promise.all([1, 2, 3].map(() => migrate(db.database, names)));
  const steps = migrationSteps(names).length;
  expect(reports.map((report) => report.applied.length).sort()).toEqual([0, 0, steps].sort());
  await checkSchema(db.database, names);
});

test('crash-proof: killed over and over, after each of its statements, it goes on where it was', async () => {
  const whole = fresh();
  await migrate(db.database, whole);
  const names = fresh();
  let kills = 0;
  for (let statements = 4; ; statements++) {
    const killed = await migrate(killedAfter(statements), names).then(
      () => false,
      () => true,
    );
    if (!killed) break;
    kills += 1;
  }
  expect(kills).toBeGreaterThan(10);
  expect(await shape(names)).toEqual(await shape(whole));
  await checkSchema(db.database, names);
}, 300_000);

/** A connection that is cut right after so many statements were sent, so that the server may or may not finish the last. */
function killedAfter(statements: number): MigrationSource {
  return {
    async connect() {
      const proxy = await tcpProxy(db.url);
      const database = connect({ url: proxy.url }, { max: 1 });
      const client = await database.connect();
      let sent = 0;
      const counted = async <Answer>(answer: Promise<Answer>): Promise<Answer> => {
        sent += 1;
        if (sent >= statements) setTimeout(() => void proxy.close(), 5);
        return await answer;
      };
      return {
        query: (text, values) => counted(client.query(text, values)),
        batch: (text) => counted(client.batch(text)),
        async release() {
          await client.release();
          await database.end();
          await proxy.close();
        },
      };
    },
  };
}

test('crash-proof: killed between the last step of a version and its end, it notes the end the next time', async () => {
  const names = fresh();
  await migrate(db.database, names);
  await db.rows(`DELETE FROM ${names.version} WHERE [Version] = 2 AND [Step] = N'complete'`);
  await expect(checkSchema(db.database, names)).rejects.toThrow(/0002_/);
  expect(await migrate(db.database, names)).toMatchObject({ applied: [] });
  await checkSchema(db.database, names);
});

test('a step that needs the table alone waits in short turns, and says so when there is none', async () => {
  const names = await seeded();
  await db.rows(
    `INSERT INTO ${names.outbox} ([Id], [Destination], [MessageType], [Payload], [CreatedAtUtc])
     VALUES (NEWID(), N'd', N't', N'{}', SYSDATETIMEOFFSET())`,
  );
  const busy = await db.database.begin({ idleMs: 60_000, lockMs: 10_000, statementMs: 10_000 });
  await busy.tx.query(`UPDATE ${names.outbox} SET [Payload] = N'{"busy":1}'`, []);
  await expect(migrate(db.database, names, { waitSeconds: 1 })).rejects.toThrow(
    /found no moment without a long transaction/,
  );
  await busy.rollback();
  await migrate(db.database, names);
});

test('another migration that does not end is named', async () => {
  const names = fresh();
  const other = await db.database.connect();
  await other.query(
    `EXEC sp_getapplock @Resource = @p1, @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 0`,
    [`relaybox migrate ${names.plain.schema}`],
  );
  try {
    await expect(migrate(db.database, names, { waitSeconds: 0.2 })).rejects.toThrow(
      /another migration of schema/,
    );
  } finally {
    await other.release();
  }
});

test('a dry run changes nothing, and tells what is missing', async () => {
  const names = fresh();
  const report = await migrate(db.database, names, { dryRun: true });
  expect(report.pending).toHaveLength(migrationSteps(names).length);
  await expect(checkSchema(db.database, names)).rejects.toThrow(/0001_tables\.sql/);
});

test('the printed SQL makes the same tables, run batch by batch as sqlcmd does, and again', async () => {
  const byRunner = fresh();
  await migrate(db.database, byRunner);
  const byHand = fresh();
  const batches = migrationSql(byHand).split(/^GO$/m);
  for (let run = 0; run < 2; run++) {
    // A session of sqlcmd's begins without it.
    await db.batches('SET QUOTED_IDENTIFIER OFF', ...batches.filter((batch) => batch.trim() !== ''));
  }
  expect(await shape(byHand)).toEqual(await shape(byRunner));
  expect(await migrate(db.database, byHand)).toEqual({ applied: [], pending: [], seedIdentity: false });
});

test('the printed SQL of which a batch failed is not taken for complete: the next migration does the rest', async () => {
  const names = fresh();
  const batches = migrationSql(names)
    .split(/^GO$/m)
    .filter((batch) => batch.trim() !== '' && !batch.includes('-- 3 outbox due'));
  await db.batches(...batches);
  await expect(checkSchema(db.database, names)).rejects.toThrow(/lacks migration 0003/);
  expect((await migrate(db.database, names)).applied).toEqual(['3 outbox due']);
});

test('a schema whose tables have other names, or that a newer release made, is refused', async () => {
  const names = fresh();
  await migrate(db.database, names);
  const other = sqlServerNames({ schema: names.plain.schema, outboxTable: 'Events' });
  await expect(migrate(db.database, other)).rejects.toThrow(/belongs to the tables "OutboxMessages"/);
  await expect(checkSchema(db.database, other)).rejects.toThrow(SchemaError);
  await db.rows(
    `INSERT INTO ${names.version} ([Version], [Step], [OutboxTable], [InboxTable])
     VALUES (99, N'complete', N'OutboxMessages', N'InboxMessages')`,
  );
  await expect(migrate(db.database, names)).rejects.toThrow(/made by a newer Relaybox/);
});

test('tables beyond the stated size are refused, with the command to run by hand', async () => {
  const names = await seeded();
  await db.rows(
    `INSERT INTO ${names.outbox} ([Id], [Destination], [MessageType], [Payload], [CreatedAtUtc])
     SELECT NEWID(), N'd', N't', N'{}', SYSDATETIMEOFFSET() FROM OPENJSON(@p1)`,
    [JSON.stringify(Array.from({ length: 1000 }, (_, n) => n))],
  );
  await expect(migrate(db.database, names, { maxRows: 50 })).rejects.toThrow(
    /relaybox migrate --max-rows \d+/,
  );
  await migrate(db.database, names, { maxRows: 1000 });
});
