import { afterAll, beforeAll, describe, it } from 'vitest';
import { inboxStoreContract } from '../../shared/testing/index.ts';
import { createInbox, type InboxFixture } from '../support/inbox.ts';
import { postgresInboxHarness } from '../support/inbox-harness.ts';

describe('the inbox store on PostgreSQL keeps the contract', () => {
  let inbox: InboxFixture;

  beforeAll(async () => {
    inbox = await createInbox({ timezone: 'America/St_Johns' });
  });
  afterAll(() => inbox.drop());

  for (const { name, run } of inboxStoreContract(() => postgresInboxHarness(inbox))) it(name, run, 60_000);
});
