import { postgres } from '../../../shared/lambda/postgres/engine.ts';
import { relayFor } from '../../../shared/lambda/relay.ts';
import type { OutboxStore, Settlement, SettleResult } from '../../../shared/store/outbox-store.ts';
import { replacing } from './replace.ts';

const options = { leaseMs: 3000, afterSuccess: 'keep', onFailedKey: 'block' } as const;

/** Sabotage: what is read is marked as published before it is on the wire. The demo must notice what an outage then loses. */
function markingFirst(store: OutboxStore): OutboxStore {
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

export const handler = relayFor({
  ...postgres,
  connect(settings, pool) {
    const connections = postgres.connect(settings, pool);
    return replacing(connections, { outbox: markingFirst(connections.outbox) });
  },
})();
