import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type {
  ClaimedInboxMessage,
  ClaimRequest,
  ClaimResult,
  InboxStore,
  NewInboxRow,
  Transaction,
} from '../../store/inbox-store.ts';
import { LONG_MS } from '../case.ts';

/** A row as the suite looks at it. Instants are told as distances from the database's own now. */
export interface InboxRowView {
  readonly rowId: string;
  readonly state: number;
  /** Seconds until the next attempt, negative once it has come; null where it is due at once. */
  readonly waitsSeconds: number | null;
  readonly lastError: string | null;
  /** Whether the row has an end (`processed_at_utc`). */
  readonly ended: boolean;
  /** Anything that changes with every write to the row. */
  readonly version: string;
}

/** What identifies an inbox message. */
export interface InboxIdentity {
  readonly consumer: string;
  readonly source: string;
  readonly externalMessageId: string;
}

/** A row as another program writes it: the seed's columns only. */
export interface ForeignInboxRow {
  readonly source: string;
  readonly externalMessageId: string;
  readonly messageType: string;
  readonly payload: string;
  readonly maxRetries: number;
  readonly state: 0 | 1;
  /** For state 1: how long that program's claim still runs. */
  readonly lockedForMs?: number;
  /** How far that program's clock is ahead, as its creation time shows. */
  readonly createdInSeconds?: number;
  /** JSON, of whatever shape that program writes. */
  readonly headersJson?: string;
  /** Retries as that program has counted them. @default 0 */
  readonly retryCount?: number;
}

/** The least that the author of an inbox store provides. Each case gets a new one, with empty tables. */
export interface InboxHarness<Tx = unknown> {
  readonly store: InboxStore<Tx>;
  /** The same tables through a second store, as another process has it. */
  readonly another: InboxStore<Tx>;
  inspect(identity: InboxIdentity): Promise<InboxRowView | undefined>;
  /** What a handler does: an effect written in its transaction, e.g. a row of a table of the harness's own. */
  write(tx: Tx, effect: string): Promise<void>;
  /** The effects that are committed. */
  effects(): Promise<readonly string[]>;
  insertForeignRow(row: ForeignInboxRow): Promise<void>;
  /** A person's requeue of a Failed message, as the operations do it. */
  requeue(identity: InboxIdentity): Promise<void>;
  /** A person's pause of a message type. */
  pause(consumer: string, messageType: string): Promise<void>;
  resume(consumer: string, messageType: string): Promise<void>;
  /** Cleans up, and rolls back transactions left open. */
  close(): Promise<void>;
}

/** The message type that cases use where nothing else is said. */
export const TYPE = 'order.placed';

const LIMITS = { idleMs: LONG_MS, lockMs: LONG_MS, statementMs: LONG_MS };

/** A message to ingest, with a random id. */
export function inboxRow(fields: Partial<NewInboxRow> = {}): NewInboxRow {
  return {
    consumer: '',
    source: 'shop',
    externalMessageId: randomUUID(),
    messageType: TYPE,
    payload: '{"orderId":"1"}',
    headers: null,
    correlationId: null,
    partitionKey: null,
    maxRetries: 5,
    failedReason: null,
    ...fields,
  };
}

/** Stores the rows, all of which must be new. */
export async function ingestNew(store: InboxStore, rows: readonly NewInboxRow[]): Promise<void> {
  const results = await store.ingest(rows);
  assert.deepEqual(
    results.map(({ added }) => added),
    rows.map(() => true),
    'new messages are added',
  );
}

/** Claims without bounds that matter. */
export async function claim(store: InboxStore, request: Partial<ClaimRequest> = {}): Promise<ClaimResult> {
  return await store.claim({
    consumer: '',
    messageType: TYPE,
    limit: 100,
    maxBytes: 8 * 1024 * 1024,
    leaseMs: LONG_MS,
    onFailedKey: 'block',
    ...request,
  });
}

/** External ids of what was claimed. */
export function externalIds(messages: readonly { readonly externalMessageId: string }[]): string[] {
  return messages.map(({ externalMessageId }) => externalMessageId);
}

/** Opens a transaction whose limits don't matter. */
export async function begin<Tx>(store: InboxStore<Tx>): Promise<Transaction<Tx>> {
  return await store.begin(LIMITS);
}

/** Handles a message: one effect, named after it, and the Processed mark, in one transaction. Answers the next types. */
export async function handle(
  harness: InboxHarness,
  message: ClaimedInboxMessage,
  store = harness.store,
): Promise<readonly string[]> {
  const nextTypes = await handleIfHeld(harness, message, store);
  assert.ok(nextTypes, 'the lease runs, so the message can be marked Processed');
  return nextTypes;
}

/** The same where the lease may have run out: then nothing is done, and undefined is the answer. */
export async function handleIfHeld(
  harness: InboxHarness,
  message: ClaimedInboxMessage,
  store = harness.store,
): Promise<readonly string[] | undefined> {
  const transaction = await begin(store);
  await harness.write(transaction.tx, message.externalMessageId);
  const marked = await store.markProcessed(transaction, message);
  if (marked) await transaction.commit();
  else await transaction.rollback();
  return marked?.nextTypes;
}

/** Fails one message. */
export async function fail(
  store: InboxStore,
  message: ClaimedInboxMessage,
  retryInSeconds: number | undefined,
  onFailedKey: 'block' | 'skip' = 'block',
) {
  return await store.markFailed([{ message, reason: 'it threw', retryInSeconds }], { onFailedKey });
}
