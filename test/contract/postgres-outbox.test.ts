import { afterAll, beforeAll, describe, it } from 'vitest';
import { outboxStoreContract } from '../../shared/testing/outbox/index.ts';
import { createMigratedDatabase, type MigratedDatabase } from '../support/migrated.ts';
import { postgresOutboxHarness } from '../support/outbox.ts';

describe('the outbox store on PostgreSQL keeps the contract', () => {
  let db: MigratedDatabase;

  beforeAll(async () => {
    db = await createMigratedDatabase({ timezone: 'Asia/Kolkata' });
  });
  afterAll(() => db.drop());

  for (const { name, run } of outboxStoreContract(() => postgresOutboxHarness(db))) it(name, run, 60_000);
});
