import { afterAll, expect, test } from 'vitest';
import { migrate } from '../../../shared/store/postgres/migrate.ts';
import { createMigratedDatabase } from '../../support/migrated.ts';

const db = await createMigratedDatabase();
afterAll(() => db.drop());

test('migrating again changes nothing', async () => {
  const report = await migrate(db.pool, db.tables);
  expect(report).toEqual({ applied: [], pending: [], seedIdentity: false });
});
