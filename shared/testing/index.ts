/** The contract suite that every store passes, and an in-memory store to try the suite on. Needs no test runner. */

export type * from '../store/inbox-store.ts';
export { asClaimedInbox } from '../store/inbox-store.ts';
export type * from '../store/outbox-store.ts';
export { asClaimed } from '../store/outbox-store.ts';
export type { ContractCase } from './case.ts';
export type { ForeignInboxRow, InboxHarness, InboxIdentity, InboxRowView } from './inbox/harness.ts';
export { inboxStoreContract } from './inbox/index.ts';
export { type InboxFault, inboxFaults, type OutboxFault, outboxFaults } from './memory/faults.ts';
export { memoryInbox } from './memory/inbox-harness.ts';
export { MemoryInboxStore } from './memory/inbox-store.ts';
export { InboxTables } from './memory/inbox-tables.ts';
export { memoryOutbox } from './memory/outbox-harness.ts';
export { MemoryOutboxStore } from './memory/outbox-store.ts';
export { OutboxTables } from './memory/outbox-tables.ts';
export type { MemoryTx } from './memory/transaction.ts';
export type {
  ForeignOutboxRow,
  OutboxHarness,
  OutboxRowView,
  ProducerTransaction,
} from './outbox/harness.ts';
export { outboxStoreContract } from './outbox/index.ts';
