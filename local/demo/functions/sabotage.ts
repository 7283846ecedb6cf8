import { randomUUID } from 'node:crypto';
import type { InboxStore } from '../../../shared/store/inbox-store.ts';
import type { OutboxStore, Settlement, SettleResult } from '../../../shared/store/outbox-store.ts';
import { replacing } from './replace.ts';

/** Sabotage: every delivery gets an identity of its own, so that no duplicate is recognised. The demo must notice. */
export function withoutDedup<Tx>(store: InboxStore<Tx>): InboxStore<Tx> {
  return replacing(store, {
    ingest: (rows) => store.ingest(rows.map((row) => ({ ...row, externalMessageId: randomUUID() }))),
  });
}

const options = { leaseMs: 3000, afterSuccess: 'keep', onFailedKey: 'block' } as const;

/** Sabotage: what is read is marked as published before it is on the wire. The demo must notice what an outage then loses. */
export function markingFirst(store: OutboxStore): OutboxStore {
  return replacing(store, {
    async read(lease, request) {
      const result = await store.read(lease, request);
      await store.settle(lease, { published: result.messages, failed: [], rejected: [] }, options);
      return result;
    },
    async settle(lease, { published, failed, rejected }: Settlement): Promise<SettleResult> {
      const messages = [...published, ...[...failed, ...rejected].map(({ message }) => message)];
      return {
        settled: messages.map(({ id }) => id),
        ended: [],
        lost: [],
        buckets: lease.buckets,
        freed: [],
      };
    },
  });
}
