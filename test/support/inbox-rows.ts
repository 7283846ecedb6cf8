import { defaults } from '../../shared/delivery/defaults.ts';
import type { ClaimRequest, NewInboxRow, TransactionLimits } from '../../shared/store/inbox-store.ts';

let made = 0;

/** A row to ingest, with an id of its own. */
export function inboxRow(fields: Partial<NewInboxRow> = {}): NewInboxRow {
  return {
    consumer: '',
    source: 'shop',
    externalMessageId: `m${++made}`,
    messageType: 'order.placed',
    payload: '{"orderId":"1"}',
    headers: null,
    correlationId: null,
    partitionKey: null,
    maxRetries: 5,
    failedReason: null,
    ...fields,
  };
}

/** A claim of `order.placed`. */
export function claimRequest(fields: Partial<ClaimRequest> = {}): ClaimRequest {
  return {
    consumer: '',
    messageType: 'order.placed',
    limit: defaults.batchSize,
    maxBytes: defaults.claimBytes,
    leaseMs: 30_000,
    onFailedKey: 'block',
    ...fields,
  };
}

/** Limits that no test comes near. */
export const limits: TransactionLimits = { idleMs: 30_000, lockMs: 10_000, statementMs: 10_000 };
