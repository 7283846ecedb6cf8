import { randomUUID } from 'node:crypto';
import { asClaimed, type ClaimedOutboxMessage } from '../../shared/store/outbox-store.ts';

let sequence = 0;

/** A claimed message as a store would make it, for tests of what happens between claim and settle. */
export function claimedMessage(fields: Partial<ClaimedOutboxMessage> = {}): ClaimedOutboxMessage {
  return asClaimed({
    id: randomUUID(),
    destination: 'orders',
    bucket: 0,
    sequence: String(++sequence),
    messageType: 'order.placed',
    payload: '{"orderId":"1"}',
    payloadBytes: 15,
    headers: {},
    correlationId: null,
    partitionKey: null,
    replay: 0,
    retryCount: 0,
    maxRetries: 5,
    ...fields,
  });
}
