import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SchemaError } from '../../../shared/message/errors.ts';
import { checkSchema } from '../../../shared/store/postgres/check.ts';
import { type MigrationSource, migrate } from '../../../shared/store/postgres/migrate.ts';
import { migrationSql } from '../../../shared/store/postgres/migration-sql.ts';
import { migrationSteps } from '../../../shared/store/postgres/migration-steps.ts';
import { type Names, postgresNames } from '../../../shared/store/postgres/names.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { seedSchema } from '../../support/seed-schema.ts';

let db: TestDatabase;
let schemas = 0;

beforeAll(async () => {
  db = await createDatabase();
});
afterAll(() => db.drop());

/** A schema of one test's own. */
function fresh(): Names {
  schemas += 1;
  return postgresNames({ schema: `test ${schemas}` });
}

/** The seed's tables, in a schema of one test's own. */
async function seeded(): Promise<Names> {
  const names = fresh();
  await db.pool.query(`CREATE SCHEMA ${names.schema}`);
  await db.pool.query(seedSchema.replaceAll('public.', `${names.schema}.`));
  return names;
}

/** Everything about a schema that a migration makes. */
async function shape(names: Names): Promise<unknown> {
  const { rows } = await db.pool.query(
    `SELECT c.relname, c.relkind, i.indisvalid, c.reloptions,
       (SELECT array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' ||
         coalesce(replace(pg_get_expr(d.adbin, d.adrelid), $1, ''), '') ORDER BY a.attname)
        FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND c.relkind = 'r') AS columns,
       replace(pg_get_indexdef(i.indexrelid), $1, '') AS index
     FROM pg_class c LEFT JOIN pg_index i ON i.indexrelid = c.oid
     WHERE c.relnamespace = $2::regnamespace ORDER BY c.relname`,
    [`"${names.plain.schema}".`, `"${names.plain.schema}"`],
  );
  return rows;
}

test('migrating again, and a third time, changes nothing', async () => {
  const names = fresh();
  const first = await migrate(db.pool, names);
  expect(first.applied).toEqual(migrationSteps(names).map((step) => `${step.version} ${step.name}`));
  const made = await shape(names);
  for (let run = 0; run < 2; run++) {
    expect(await migrate(db.pool, names)).toEqual({ applied: [], pending: [], seedIdentity: false });
  }
  expect(await shape(names)).toEqual(made);
});

test('two at once: one does the work, the other waits for it and finds it done', async () => {
  const names = fresh();
  const reports = await Promise.all([
    migrate(db.pool, names),
    migrate(db.pool, names),
    migrate(db.pool, names),
  ]);
  const steps = migrationSteps(names).length;
  expect(reports.map((report) => report.applied.length).sort()).toEqual([0, 0, steps].sort());
  await checkSchema(db.pool, names);
});

test('crash-proof: killed over and over, after each of its statements, it goes on where it was', async () => {
  const whole = fresh();
  await migrate(db.pool, whole);
  const names = fresh();
  let kills = 0;
  for (let statements = 5; ; statements++) {
    const killed = await migrate(killedAfter(statements), names).then(
      () => false,
      () => true,
    );
    if (!killed) break;
    kills += 1;
  }
  expect(kills).toBeGreaterThan(15);
  expect(await shape(names)).toEqual(await shape(whole));
  await checkSchema(db.pool, names);
});

/** A connection that is cut right after so many statements were sent, so that the server may or may not finish the last. */
function killedAfter(statements: number): MigrationSource {
  return {
    async connect() {
      const client = await db.pool.connect();
      let sent = 0;
      const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
      return Object.assign(Object.create(client) as pg.PoolClient, {
        on: () => undefined,
        removeListener: () => undefined,
        release: () => client.release(true),
        query: async (...args: unknown[]) => {
          const answer = query(...args);
          sent += 1;
          if (sent < statements) return await answer;
          client.on('error', () => undefined);
          setImmediate(() => (client as unknown as pg.Client).connection.stream.destroy());
          return await answer;
        },
      });
    },
  };
}

test('crash-proof: killed between the last step of a version and its end, it notes the end the next time', async () => {
  const names = fresh();
  await migrate(db.pool, names);
  await db.pool.query(`DELETE FROM ${names.version} WHERE version = 2 AND step = 'complete'`);
  await expect(checkSchema(db.pool, names)).rejects.toThrow(/0002_/);
  expect(await migrate(db.pool, names)).toMatchObject({ applied: [] });
  await checkSchema(db.pool, names);
});

test('an index that an interrupted build left invalid is built again', async () => {
  const names = fresh();
  await migrate(db.pool, names);
  const made = await shape(names);
  const index = names.placeholders['outbox_index_failed'] ?? '';
  await db.pool.query(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = $1::regclass`, [
    `${names.schema}.${index}`,
  ]);
  await db.pool.query(
    `DELETE FROM ${names.version} WHERE step IN ('outbox failed', 'complete') AND version = 3`,
  );
  await expect(checkSchema(db.pool, names)).rejects.toThrow(/0003_indexes\.sql/);
  expect((await migrate(db.pool, names)).applied).toEqual(['3 outbox failed']);
  expect(await shape(names)).toEqual(made);
});

test('a step that needs the table alone waits in short turns, and says so when there is none', async () => {
  const names = await seeded();
  const busy = await db.pool.connect();
  await busy.query(`BEGIN; SELECT count(*) FROM ${names.outbox}`);
  const waiting = migrate(db.pool, names, { waitSeconds: 1 });
  await expect(waiting).rejects.toThrow(/found no moment without a long transaction/);
  await busy.query('ROLLBACK');
  busy.release();
  await migrate(db.pool, names);
});

test('another migration that does not end is named', async () => {
  const names = fresh();
  const other = await db.pool.connect();
  await other.query(`SELECT pg_advisory_lock(hashtextextended($1, 0))`, [
    `relaybox migrate ${names.plain.schema}`,
  ]);
  await expect(migrate(db.pool, names, { waitSeconds: 0.2 })).rejects.toThrow(/another migration of schema/);
  other.release(true);
});

test('a dry run changes nothing, and tells what is missing', async () => {
  const names = fresh();
  const report = await migrate(db.pool, names, { dryRun: true });
  expect(report.pending).toHaveLength(migrationSteps(names).length);
  await expect(checkSchema(db.pool, names)).rejects.toThrow(/0001_tables\.sql/);
});

test('the printed SQL makes the same tables', async () => {
  const byRunner = fresh();
  await migrate(db.pool, byRunner);
  const byHand = fresh();
  const client = await db.pool.connect();
  for (const statement of statements(migrationSql(byHand))) await client.query(statement);
  client.release();
  expect(await shape(byHand)).toEqual(await shape(byRunner));
  expect(await migrate(db.pool, byHand)).toEqual({ applied: [], pending: [], seedIdentity: false });
});

test('the printed SQL stops at the first error, and records no step that failed', () => {
  const [first] = migrationSql(fresh())
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('--'));
  expect(first).toBe(String.raw`\set ON_ERROR_STOP on`);
});

/** As psql does it: one statement after the other. */
function statements(sql: string): string[] {
  const pieces =
    sql.replace(/^ *(?:--|\\).*\n/gm, '').match(/(?:\$relaybox\$[\s\S]*?\$relaybox\$|[^;])+;/g) ?? [];
  return pieces.map((piece) => piece.trim());
}

test('a schema whose tables have other names, or that a newer release made, is refused', async () => {
  const names = fresh();
  await migrate(db.pool, names);
  const other = postgresNames({ schema: names.plain.schema, outboxTable: 'events' });
  await expect(migrate(db.pool, other)).rejects.toThrow(/belongs to the tables "outbox_messages"/);
  await expect(checkSchema(db.pool, other)).rejects.toThrow(SchemaError);
  await db.pool.query(
    `INSERT INTO ${names.version} SELECT 99, 'complete', 'outbox_messages', 'inbox_messages'`,
  );
  await expect(migrate(db.pool, names)).rejects.toThrow(/made by a newer Relaybox/);
});

test('tables beyond the stated size are refused, with the command to run by hand', async () => {
  const names = await seeded();
  await db.pool.query(`INSERT INTO ${names.outbox} (id, destination, message_type, payload, created_at_utc)
    SELECT gen_random_uuid(), 'd', 't', '{}', now() FROM generate_series(1, 1000)`);
  // Never analysed, so only its size tells.
  await expect(migrate(db.pool, names, { maxRows: 50 })).rejects.toThrow(/relaybox migrate --max-rows \d+/);
  await db.pool.query(`ANALYZE ${names.outbox}`);
  await expect(migrate(db.pool, names, { maxRows: 999 })).rejects.toThrow(/about 1000 rows/);
  await migrate(db.pool, names, { maxRows: 1000 });
});

test('a login without rights to create anything can run it where nothing is missing', async () => {
  const names = fresh();
  await migrate(db.pool, names);
  await db.pool.query(`CREATE ROLE relaybox_reader_${process.pid} LOGIN PASSWORD 'reader'`);
  await db.pool.query(`GRANT USAGE ON SCHEMA ${names.schema} TO relaybox_reader_${process.pid}`);
  await db.pool.query(`GRANT SELECT ON ${names.version} TO relaybox_reader_${process.pid}`);
  const url = new URL(db.url);
  url.username = `relaybox_reader_${process.pid}`;
  url.password = 'reader';
  const pool = new pg.Pool({ connectionString: url.href, max: 1 });
  expect(await migrate(pool, names)).toMatchObject({ applied: [] });
  // Made by hand, say, and not recorded: PostgreSQL would ask for the right to create before it looks.
  await db.pool.query(`GRANT INSERT ON ${names.version} TO relaybox_reader_${process.pid}`);
  await db.pool.query(`DELETE FROM ${names.version} WHERE step IN ('outbox failed', 'inbox ready')`);
  expect(await migrate(pool, names)).toMatchObject({ applied: ['3 outbox failed', '3 inbox ready'] });
  await pool.end();
  await db.pool.query(
    `DROP OWNED BY relaybox_reader_${process.pid}; DROP ROLE relaybox_reader_${process.pid}`,
  );
});

test('a login that may not create is told the grant, and can migrate once it has it', async () => {
  const role = `relaybox_weak_${process.pid}`;
  await db.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'weak'`);
  const url = new URL(db.url);
  url.username = role;
  url.password = 'weak';
  const pool = new pg.Pool({ connectionString: url.href, max: 1 });
  const absent = fresh();
  const there = fresh();
  await db.pool.query(`CREATE SCHEMA ${there.schema}`);
  try {
    for (const names of [absent, there]) {
      const error: unknown = await migrate(pool, names).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(SchemaError);
      const { message } = error as SchemaError;
      expect(message).toContain(`the login ${role} may not migrate schema "${names.plain.schema}"`);
      await db.pool.query(/run (GRANT .* TO \S+),/.exec(message)?.[1] ?? 'SELECT no grant in the message');
      expect((await migrate(pool, names)).pending).toEqual([]);
    }
  } finally {
    await pool.end();
    await db.pool.query(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
  }
});
