import { afterAll, beforeAll, expect, test } from 'vitest';
import { SchemaError } from '../../../shared/message/errors.ts';
import { checkSchema, needs } from '../../../shared/store/postgres/check.ts';
import { connect, type PostgresDatabase } from '../../../shared/store/postgres/connections.ts';
import { migrationFiles } from '../../../shared/store/postgres/migration-files.ts';
import { createDatabase } from '../../support/database.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../../support/migrated.ts';

const role = `relaybox_check_${process.pid}`;
let db: MigratedDatabase;
let limited: PostgresDatabase;

beforeAll(async () => {
  db = await createMigratedDatabase();
  await db.pool.query(`CREATE ROLE ${role} LOGIN PASSWORD 'check'`);
  const url = new URL(db.url);
  url.username = role;
  url.password = 'check';
  limited = connect({ url: url.href });
});
afterAll(async () => {
  await limited.end();
  await db.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  await db.drop();
});

test('one query tells that all is there', async () => {
  let queries = 0;
  const counting = {
    query: (text: string, values?: unknown[]) => {
      queries += 1;
      return db.pool.query(text, values);
    },
  };
  expect(await checkSchema(counting, db.tables)).toEqual({
    version: migrationFiles.length,
    seedIdentity: false,
  });
  expect(queries).toBe(1);
});

test('a missing schema, and a missing migration, are named', async () => {
  const empty = await createDatabase();
  await expect(checkSchema(empty.pool, db.tables)).rejects.toThrow(
    /schema "public" .* lacks migration 0001_tables\.sql: run "relaybox migrate"/,
  );
  await empty.drop();
  await db.pool.query(`DELETE FROM relaybox_schema_version WHERE version = 3 AND step = 'complete'`);
  await expect(checkSchema(db.pool, db.tables)).rejects.toThrow(/lacks migration 0003_indexes\.sql/);
  await db.pool.query(
    `INSERT INTO relaybox_schema_version VALUES (3, 'complete', 'outbox_messages', 'inbox_messages')`,
  );
});

test('missing grants are named as the statements that give them, and those statements are enough', async () => {
  for (let round = 0; round < 3; round++) {
    const error = await checkSchema(limited, db.tables, needs.relay).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (error === undefined) break;
    expect(error).toBeInstanceOf(SchemaError);
    const { message } = error as SchemaError;
    await db.pool.query(message.slice(message.indexOf('GRANT')).replaceAll('<login>', role));
  }
  await checkSchema(limited, db.tables, needs.relay);
  await expect(checkSchema(limited, db.tables, needs.ingest)).rejects.toThrow(
    /GRANT SELECT ON TABLE "public"\."inbox_messages" TO "relaybox_check_\d+"/,
  );
});

test('an inbox without a unique index is refused, with the statement that makes one', async () => {
  await db.pool.query('DROP INDEX ix_inbox_messages_identity');
  const error = await checkSchema(db.pool, db.tables).catch((thrown: Error) => thrown);
  expect(error).toBeInstanceOf(SchemaError);
  await db.pool.query((error as Error).message.slice((error as Error).message.indexOf('CREATE')));
  await checkSchema(db.pool, db.tables);
});
