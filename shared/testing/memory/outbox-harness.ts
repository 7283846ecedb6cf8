import { State } from '../../message/message.ts';
import { storedHeaders } from '../../store/stored-headers.ts';
import type { OutboxHarness, ProducerTransaction } from '../outbox/harness.ts';
import type { OutboxFault } from './faults.ts';
import { MemoryOutboxStore } from './outbox-store.ts';
import { now, type OutboxRecord, OutboxTables, write } from './outbox-tables.ts';

/** A harness over a new in-memory outbox, sound or broken in the given ways. */
export async function memoryOutbox(faults: Iterable<OutboxFault> = []): Promise<OutboxHarness> {
  const tables = new OutboxTables(faults);
  const row = (id: string): OutboxRecord => {
    const record = tables.rows.get(id);
    if (!record) throw new Error(`no message ${id}`);
    return record;
  };
  return {
    store: new MemoryOutboxStore(tables),
    another: new MemoryOutboxStore(tables),
    async inspect(id) {
      const record = tables.rows.get(id);
      if (!record) return undefined;
      const { state, held, retryCount, nextAt, lastError, ended, version } = record;
      const waitsSeconds = nextAt === null ? null : (nextAt - now()) / 1000;
      return { state, held, retryCount, waitsSeconds, lastError, ended, version: String(version) };
    },
    archived: async (id) => tables.archive.has(id),
    begin: async () => transaction(tables),
    async insertForeignRow({
      state,
      lockedForMs,
      createdInSeconds: _ignored,
      headersJson = null,
      retryCount = 0,
      ...fields
    }) {
      const record = tables.record({
        ...fields,
        headers: storedHeaders(headersJson),
        correlationId: null,
        partitionKey: null,
        delaySeconds: null,
      });
      tables.rows.set(fields.id, { ...record, state, retryCount, lockedUntil: now() + (lockedForMs ?? 0) });
    },
    async discard(id) {
      write(row(id), { state: State.Discarded, held: false, ended: true });
    },
    async requeue(id) {
      write(row(id), { state: State.Pending, held: false, ended: false, nextAt: null, retryCount: 0 });
    },
    async pause(destination) {
      tables.lane(destination).paused = true;
    },
    async resume(destination) {
      tables.lane(destination).paused = false;
    },
    async close() {},
  };
}

function transaction(tables: OutboxTables): ProducerTransaction {
  const pending = new Map<string, OutboxRecord>();
  const finish = (): void => {
    for (const id of pending.keys()) tables.reserved.delete(id);
  };
  return {
    async add(rows) {
      return rows.map((row) => {
        const added = !tables.rows.has(row.id) && !tables.reserved.has(row.id);
        if (added) {
          const record = tables.record(row);
          pending.set(row.id, record);
          tables.reserved.add(row.id);
          if (tables.broken('add is not atomic')) tables.rows.set(row.id, record);
        }
        return { id: row.id, added };
      });
    },
    async commit() {
      for (const [id, record] of pending) tables.rows.set(id, record);
      finish();
    },
    async rollback() {
      finish();
    },
  };
}
