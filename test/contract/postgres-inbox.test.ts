import { afterAll, describe, it } from 'vitest';
import { inboxStoreContract } from '../../shared/testing/index.ts';
import { engine } from '../support/engine/engine.ts';
import { inboxHarnessOn } from '../support/engine/inbox-harness.ts';

describe('the inbox store on PostgreSQL keeps the contract', async () => {
  const db = await engine.createDatabase({ timezone: 'America/St_Johns' });
  afterAll(() => db.drop());

  for (const { name, run } of inboxStoreContract(inboxHarnessOn(db))) it(name, run, 60_000);
});
