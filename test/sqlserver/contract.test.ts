import { afterAll, describe, it } from 'vitest';
import { inboxStoreContract, outboxStoreContract } from '../../shared/testing/index.ts';
import { engine } from '../support/engine/engine.ts';
import { outboxHarnessOn } from '../support/engine/outbox-harness.ts';
import { sqlServerInboxHarness } from './support/inbox-harness.ts';
import { onSqlServer } from './support/server.ts';

for (const snapshot of ['OFF', 'ON'] as const) {
  describe(`the outbox store keeps the contract, on SQL Server with READ_COMMITTED_SNAPSHOT ${snapshot}`, async () => {
    const db = await engine.createDatabase({ snapshot });
    afterAll(() => db.drop());

    for (const { name, run } of outboxStoreContract(outboxHarnessOn(db))) it(name, run, 60_000);
  });
}

onSqlServer('the inbox store keeps the contract', (fixture) => {
  for (const { name, run } of inboxStoreContract(() => sqlServerInboxHarness(fixture())))
    it(name, run, 60_000);
});
