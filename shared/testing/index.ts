/** The contract suite that every store passes, and an in-memory store to try the suite on. Needs no test runner. */
export type { ContractCase } from './case.ts';
export { type InboxFault, inboxFaults, type OutboxFault, outboxFaults } from './memory/faults.ts';
export { memoryOutbox } from './memory/outbox-harness.ts';
export { MemoryOutboxStore } from './memory/outbox-store.ts';
export { OutboxTables } from './memory/outbox-tables.ts';
export type {
  ForeignOutboxRow,
  OutboxHarness,
  OutboxRowView,
  ProducerTransaction,
} from './outbox/harness.ts';
export { outboxStoreContract } from './outbox/index.ts';
