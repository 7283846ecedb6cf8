import { it } from 'vitest';
import { inboxStoreContract, outboxStoreContract } from '../../shared/testing/index.ts';
import { sqlServerInboxHarness } from './support/inbox-harness.ts';
import { sqlServerOutboxHarness } from './support/outbox-harness.ts';
import { onSqlServer } from './support/server.ts';

onSqlServer('the outbox store keeps the contract', (fixture) => {
  for (const { name, run } of outboxStoreContract(() => sqlServerOutboxHarness(fixture())))
    it(name, run, 60_000);
});

onSqlServer('the inbox store keeps the contract', (fixture) => {
  for (const { name, run } of inboxStoreContract(() => sqlServerInboxHarness(fixture())))
    it(name, run, 60_000);
});
