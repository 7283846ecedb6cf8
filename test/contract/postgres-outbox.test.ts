import { afterAll, describe, it } from 'vitest';
import { outboxStoreContract } from '../../shared/testing/outbox/index.ts';
import { engine } from '../support/engine/engine.ts';
import { outboxHarnessOn } from '../support/engine/outbox-harness.ts';

describe('the outbox store on PostgreSQL keeps the contract', async () => {
  const db = await engine.createDatabase({ timezone: 'Asia/Kolkata' });
  afterAll(() => db.drop());

  for (const { name, run } of outboxStoreContract(outboxHarnessOn(db))) it(name, run, 60_000);
});
