import { afterAll, describe, it } from 'vitest';
import { inboxStoreContract, outboxStoreContract } from '../../shared/testing/index.ts';
import { engine } from '../support/engine/engine.ts';
import { inboxHarnessOn } from '../support/engine/inbox-harness.ts';
import { outboxHarnessOn } from '../support/engine/outbox-harness.ts';

for (const snapshot of ['OFF', 'ON'] as const) {
  describe(`on SQL Server with READ_COMMITTED_SNAPSHOT ${snapshot}`, async () => {
    const db = await engine.createDatabase({ snapshot });
    afterAll(() => db.drop());

    describe('the outbox store keeps the contract', () => {
      for (const { name, run } of outboxStoreContract(outboxHarnessOn(db))) it(name, run, 60_000);
    });
    describe('the inbox store keeps the contract', () => {
      const cases = inboxStoreContract(inboxHarnessOn(db), {
        keepsIdleTransactions: !engine.endsIdleTransactions,
      });
      for (const { name, run } of cases) it(name, run, 60_000);
    });
  });
}
