import { State } from '../../message/message.ts';
import { storedHeaders } from '../../store/stored-headers.ts';
import type { InboxHarness, InboxIdentity } from '../inbox/harness.ts';
import { inboxRow } from '../inbox/harness.ts';
import type { InboxFault } from './faults.ts';
import { MemoryInboxStore } from './inbox-store.ts';
import { change, InboxTables, now } from './inbox-tables.ts';
import type { MemoryTx } from './transaction.ts';

/** A harness over a new in-memory inbox, sound or broken in the given ways. */
export async function memoryInbox(faults: Iterable<InboxFault> = []): Promise<InboxHarness<MemoryTx>> {
  const tables = new InboxTables(faults);
  return {
    store: new MemoryInboxStore(tables),
    another: new MemoryInboxStore(tables),
    async inspect(identity: InboxIdentity) {
      const record = tables.find(identity);
      if (!record) return undefined;
      const { rowId, state, nextAt, lastError, ended, version } = record;
      const waitsSeconds = nextAt === null ? null : (nextAt - now()) / 1000;
      return { rowId, state, waitsSeconds, lastError, ended, version: String(version) };
    },
    async write(tx, effect) {
      tx.write(effect);
    },
    effects: async () => [...tables.effects],
    async insertForeignRow({
      state,
      lockedForMs,
      createdInSeconds: _ignored,
      headersJson = null,
      retryCount = 0,
      ...fields
    }) {
      const record = tables.insert(inboxRow({ ...fields, headers: storedHeaders(headersJson) }));
      change(record, { state, retryCount, lockedUntil: now() + (lockedForMs ?? 0) });
    },
    async requeue(identity: InboxIdentity) {
      const record = tables.find(identity);
      if (record?.state !== State.Failed) throw new Error('only a Failed message is requeued');
      change(record, { state: State.Pending, ended: false, blocks: false, retryCount: 0, lostLeases: 0 });
    },
    async pause(consumer, messageType) {
      tables.paused.add(`${consumer}/${messageType}`);
    },
    async resume(consumer, messageType) {
      tables.paused.delete(`${consumer}/${messageType}`);
    },
    async close() {},
  };
}
