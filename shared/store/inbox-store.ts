import type { Headers } from '../message/message.ts';
import type { SqlExecutor } from './executor.ts';
import type { OnFailedKey } from './outbox-store.ts';

declare const claimed: unique symbol;

/** A message as ingest writes it. */
export interface NewInboxRow {
  /** Whose copy this is; the empty string is the default consumer. */
  readonly consumer: string;
  readonly source: string;
  readonly externalMessageId: string;
  readonly messageType: string;
  readonly payload: string;
  readonly headers: Headers | null;
  readonly correlationId: string | null;
  readonly partitionKey: string | null;
  readonly maxRetries: number;
  /** Set where the body could be stored but not understood: the row starts as Failed, with this reason. */
  readonly failedReason: string | null;
}

/** What became of one row of a batch. */
export interface IngestResult {
  /** False for a duplicate, within the batch or of a row already there, whatever that row's state. */
  readonly added: boolean;
  /** A duplicate whose payload is another one: somebody reuses ids. */
  readonly differs: boolean;
}

/** A message in this worker's hands while its lease runs. Only a store makes one, and only one of these can be settled. */
export interface ClaimedInboxMessage {
  readonly [claimed]: true;
  /** The row's own id. */
  readonly rowId: string;
  readonly lockToken: string;
  readonly consumer: string;
  readonly source: string;
  readonly externalMessageId: string;
  readonly messageType: string;
  readonly payload: string;
  readonly headers: Headers;
  readonly correlationId: string | null;
  readonly partitionKey: string | null;
  /** 1 at the first attempt; this one is counted already. */
  readonly attempt: number;
  readonly maxRetries: number;
  /** ISO 8601, by the database's clock, for display only. */
  readonly createdAt: string;
}

/** What one claim may take. */
export interface ClaimRequest {
  readonly consumer: string;
  readonly messageType: string;
  /** Only messages of this source. @default those of every source */
  readonly source?: string | undefined;
  readonly limit: number;
  readonly maxBytes: number;
  readonly leaseMs: number;
  readonly onFailedKey: OnFailedKey;
  /** The handler's own retries, written to the rows it claims. @default each row keeps its own */
  readonly maxRetries?: number;
}

/** What a claim took. */
export interface ClaimResult {
  readonly messages: readonly ClaimedInboxMessage[];
  /** The only message is one whose lease ran out: it may be what kills its function, so nothing else runs beside it. */
  readonly alone: boolean;
  /** Messages that ended in Failed in this claim, because they used up their attempts by losing leases. */
  readonly ended: number;
  /** Types of the messages that come next in their key after an ended one, to be woken. */
  readonly nextTypes: readonly string[];
}

/** An attempt that failed. */
export interface FailedHandling {
  readonly message: ClaimedInboxMessage;
  readonly reason: string;
  /** Undefined: end in Failed at once. */
  readonly retryInSeconds: number | undefined;
}

/** What a settle changed, and what it could not. */
export interface InboxSettleResult {
  /** Row ids that were changed. */
  readonly settled: readonly string[];
  /** Of those, row ids that ended in Failed. */
  readonly ended: readonly string[];
  /** Row ids whose lease was lost. */
  readonly lost: readonly string[];
  /** Types that come next in the keys that went on, to be woken. */
  readonly nextTypes: readonly string[];
}

/** Bounds of a handler's transaction, so that a killed or frozen function's locks go away by themselves. All in milliseconds. */
export interface TransactionLimits {
  readonly idleMs: number;
  readonly lockMs: number;
  readonly statementMs: number;
}

/** A transaction of the store's engine. `Tx` is what the application's code gets. */
export interface Transaction<Tx> {
  readonly tx: Tx;
  /** The same transaction for Relaybox's own statements. */
  readonly executor: SqlExecutor;
  /** Rejects where the commit's outcome isn't known or is a roll-back: the work must count as not done. */
  commit(): Promise<void>;
  /** Rolls back; destroys the connection where that fails. Never rejects. */
  rollback(): Promise<void>;
  /** Closes the connection under the transaction, at once, whatever it is doing. Never rejects. */
  destroy(): Promise<void>;
  /**
   * How the work ended the transaction itself, as a sentence for a person; undefined while it is whole. What it wrote
   * before that may be committed, so that it must not be done again. A store whose driver can't tell leaves this out.
   */
  endedInside?(): string | undefined;
}

/** The seed's `IInboxRepository`, grown: what ingest and handlers need of a database. */
export interface InboxStore<Tx = unknown> {
  /** Stores a batch in one statement; results in the order given. Rejects as a whole where the database can't take it now. */
  ingest(rows: readonly NewInboxRow[]): Promise<readonly IngestResult[]>;

  /** Claims due messages of one type, counting the attempt: unkeyed ones, and keyed ones that head their key. */
  claim(request: ClaimRequest): Promise<ClaimResult>;

  /** Opens a transaction for a handler, on READ COMMITTED. */
  begin(limits: TransactionLimits): Promise<Transaction<Tx>>;

  /**
   * Asked after an attempt has failed, once its transaction is over: true where the database takes work on a connection
   * that the attempt has no part in. The attempt's own connection can't tell: the message may be what ended or blocked
   * it. Answers within seconds, and never rejects.
   */
  reachable(): Promise<boolean>;

  /**
   * The last statements of a handler's transaction: the Processed mark, and the key's way on.
   * @returns undefined where the lease was lost; then the transaction must be rolled back.
   */
  markProcessed(
    transaction: Transaction<Tx>,
    message: ClaimedInboxMessage,
  ): Promise<{ readonly nextTypes: readonly string[] } | undefined>;

  /** Writes failures, each fenced by its token. */
  markFailed(
    failures: readonly FailedHandling[],
    options: { readonly onFailedKey: OnFailedKey },
  ): Promise<InboxSettleResult>;

  /** Gives messages back, due at once, their attempt not counted. */
  release(messages: readonly ClaimedInboxMessage[]): Promise<InboxSettleResult>;

  /**
   * The direct consumer's claim, in the caller's transaction: true the first time that this consumer sees this message.
   * Waits for a concurrent transaction with the same receipt.
   */
  receive(
    transaction: Transaction<Tx>,
    receipt: { readonly consumer: string; readonly source: string; readonly externalMessageId: string },
  ): Promise<boolean>;

  /** Seconds until the next waiting message of the type, or lease that may run out; undefined where nothing waits. */
  secondsToNextDue(request: {
    readonly consumer: string;
    readonly messageType: string;
  }): Promise<number | undefined>;
}

/** Marks a message as claimed. For store implementations only. */
export function asClaimedInbox(fields: Omit<ClaimedInboxMessage, typeof claimed>): ClaimedInboxMessage {
  return fields as ClaimedInboxMessage;
}
