import { type Backoff, retryBackoff } from '../delivery/backoff.ts';
import { Deadline } from '../delivery/deadline.ts';
import { defaults } from '../delivery/defaults.ts';
import type { Failure } from '../delivery/failure.ts';
import { inParallel } from '../delivery/parallel.ts';
import { silent, type Telemetry } from '../delivery/telemetry.ts';
import type { ClaimedInboxMessage, ClaimResult, InboxStore } from '../store/inbox-store.ts';
import type { OnFailedKey } from '../store/outbox-store.ts';
import { verdictOf } from './attempt.ts';
import type { Handling } from './context.ts';
import { handleMessage } from './handle-message.ts';
import { NextTypes } from './next-types.ts';
import { Settler } from './settler.ts';

/**
 * What becomes of a message whose handler was killed, frozen or out of time, so that nobody knows how far it came:
 * `retry` it, or let it `fail` at once, for a person to decide.
 */
export type OnLeaseLost = 'retry' | 'fail';

/** What handles the due messages of one type. */
export interface HandleOptions<Payload, Tx, Outbox> extends Handling<Payload, Tx, Outbox> {
  readonly store: InboxStore<Tx>;
  readonly messageType: string;
  /** @default '' */
  readonly consumer?: string;
  /** @default 50 */
  readonly batchSize?: number;
  /** Payload bytes that one claim may bring. @default 8 MiB */
  readonly maxBytes?: number;
  /** Messages at once; as many transactions, and a connection besides. @default 4 */
  readonly parallelism?: number;
  /** Retries after the first attempt, written to the rows. @default what each row says */
  readonly maxRetries?: number | undefined;
  readonly retry?: Backoff;
  /** @default 'block' */
  readonly onFailedKey?: OnFailedKey;
  /** @default 'retry' */
  readonly onLeaseLost?: OnLeaseLost;
  /** A message's lease; on Lambda the function's timeout and a margin. @default 120,000 */
  readonly leaseMs?: number;
  /** The end of the invocation. */
  readonly deadline: Deadline;
  /** Kept free before deadline and lease for what is to be written then. @default 1,500 */
  readonly marginMs?: number;
  /** Shutdown: nothing more is begun, and what runs has `drainMs` to end. */
  readonly signal?: AbortSignal;
  /** @default 30,000 */
  readonly drainMs?: number;
  readonly telemetry?: Telemetry;
  /** Told of other types whose messages are due next in keys that went on. Best effort. */
  readonly wake?: (messageTypes: readonly string[]) => Promise<void>;
}

/** What one run did. */
export interface HandlingReport {
  readonly claimed: number;
  readonly handled: number;
  readonly retried: number;
  /** Ended in Failed. */
  readonly failed: number;
  readonly released: number;
  /** Whose lease was lost, so that nothing was written. */
  readonly lost: number;
  /** True where due work was left, for want of time or of a database. */
  readonly workLeft: boolean;
  /** Why the database could not be used, where that ended the run. */
  readonly unavailable: string | undefined;
}

/**
 * Handles due messages of one type until none is due or the time is up. Any number of these may run at once.
 * Rejects only where a claim fails, with nothing in hand.
 */
export async function handleDue<Payload, Tx, Outbox>(
  options: HandleOptions<Payload, Tx, Outbox>,
): Promise<HandlingReport> {
  return await new Run(options).toTheEnd();
}

type Settings<Payload, Tx, Outbox> = HandleOptions<Payload, Tx, Outbox> &
  typeof handlingDefaults & {
    readonly signal: AbortSignal;
    readonly telemetry: Telemetry;
  };

const handlingDefaults = {
  consumer: '' as string,
  batchSize: defaults.batchSize as number,
  maxBytes: defaults.claimBytes as number,
  parallelism: defaults.parallelism as number,
  retry: retryBackoff,
  onFailedKey: 'block' as OnFailedKey,
  onLeaseLost: 'retry' as OnLeaseLost,
  leaseMs: defaults.messageLeaseSeconds * 1000,
  marginMs: 1_500,
  drainMs: defaults.drainSeconds * 1000,
};

class Run<Payload, Tx, Outbox> {
  readonly #options: Settings<Payload, Tx, Outbox>;
  readonly #settler: Settler;
  readonly #nextTypes: NextTypes;
  /** All the time there is for one message; a new invocation would have no more. */
  readonly #fullMs: number;
  /** Of the claim whose messages are in hand. */
  #lease = Deadline.in(0);
  #claimed = 0;
  #handled = 0;
  #lost = 0;
  #ended = 0;
  #slowestCycleMs = 0;
  #slowestHandlerMs = 0;
  #unavailable: string | undefined;

  constructor(given: HandleOptions<Payload, Tx, Outbox>) {
    const signal = new AbortController().signal;
    this.#options = { ...handlingDefaults, signal, telemetry: silent, ...given };
    const { deadline, leaseMs, marginMs, messageType, telemetry, wake } = this.#options;
    this.#fullMs = Math.min(deadline.remainingMs(), leaseMs) - marginMs;
    this.#nextTypes = new NextTypes(messageType, telemetry, wake);
    const onNextTypes = (types: readonly string[]): void => this.#nextTypes.add(types);
    const leftMs = (): number => Math.min(deadline.remainingMs() - marginMs, this.#lease.remainingMs());
    this.#settler = new Settler({ ...this.#options, leftMs, onNextTypes });
  }

  async toTheEnd(): Promise<HandlingReport> {
    let due = true;
    try {
      while (due && !this.#mustStop()) due = await this.#cycle();
    } finally {
      await this.#nextTypes.sent();
    }
    const { retried, failed, released, lost } = this.#settler.counts;
    return {
      claimed: this.#claimed,
      handled: this.#handled,
      retried,
      failed: failed + this.#ended,
      released,
      lost: lost + this.#lost,
      workLeft: due,
      unavailable: this.#unavailable,
    };
  }

  /** A claim is made only where the slowest cycle so far would still fit in. */
  #mustStop(): boolean {
    const { deadline, marginMs, signal } = this.#options;
    const enough = deadline.remainingMs() > this.#slowestCycleMs + marginMs;
    return signal.aborted || this.#unavailable !== undefined || !enough;
  }

  /** One claim and its batch; false where nothing was due. */
  async #cycle(): Promise<boolean> {
    const { leaseMs, marginMs, parallelism, messageType, telemetry } = this.#options;
    const began = performance.now();
    // Taken before the claim, since the lease runs from some moment after this one.
    const lease = Deadline.in(leaseMs - marginMs);
    this.#lease = lease;
    const { messages, alone, ended, nextTypes } = await this.#claim();
    this.#nextTypes.add(nextTypes);
    if (ended > 0) {
      this.#ended += ended;
      telemetry.count('Failed', ended, messageType);
      telemetry.logger.error('messages lost their last lease and ended in Failed', { messageType, ended });
    }
    this.#claimed += messages.length;
    if (messages.length > 0) {
      telemetry.count('Claimed', messages.length, messageType);
      await inParallel(messages, parallelism, (message) => this.#message(message, lease, alone));
      await this.#settler.idle();
      this.#unavailable ??= this.#settler.trouble;
    }
    this.#nextTypes.flush();
    this.#slowestCycleMs = Math.max(this.#slowestCycleMs, performance.now() - began);
    return messages.length > 0 || ended > 0;
  }

  async #claim(): Promise<ClaimResult> {
    const { store, consumer, messageType, batchSize, maxBytes, leaseMs, onFailedKey, maxRetries } =
      this.#options;
    const { onLeaseLost, parallelism } = this.#options;
    const own = maxRetries === undefined ? {} : { maxRetries };
    // What is in hand when a function is killed counts as begun: so no more is than runs.
    const limit = onLeaseLost === 'fail' ? Math.min(batchSize, parallelism) : batchSize;
    return await store.claim({
      consumer,
      messageType,
      limit,
      maxBytes,
      leaseMs,
      onFailedKey,
      ...own,
    });
  }

  /** Handles one message, or gives it back where it should not be begun any more. Never rejects. */
  async #message(claimed: ClaimedInboxMessage, lease: Deadline, lost: boolean): Promise<void> {
    const { deadline, marginMs, signal, telemetry, messageType, onLeaseLost } = this.#options;
    if (lost && onLeaseLost === 'fail') {
      return this.#failed(claimed, forAPerson('its lease ran out while its handler ran, or before it began'));
    }
    const limitMs = Math.min(deadline.remainingMs() - marginMs, lease.remainingMs());
    // With all the time there is a message is begun however slow others were: nobody could give it more.
    const fullTime = limitMs >= this.#fullMs * 0.9;
    const tooLate = limitMs <= 0 || (limitMs <= this.#slowestHandlerMs && !fullTime);
    if (signal.aborted || this.#unavailable !== undefined || tooLate) {
      return this.#settler.settle(claimed, { write: 'release', reason: 'not begun' });
    }
    const began = performance.now();
    const end = await handleMessage(claimed, { ...this.#options, limitMs, fullTime });
    const ms = performance.now() - began;
    telemetry.count('HandlerMs', ms, messageType);
    if (end.kind === 'committed') this.#done(end.value, ms);
    else if (end.kind === 'undone') this.#leaseLost(claimed);
    else if (end.cut && onLeaseLost === 'fail') this.#failed(claimed, forAPerson(end.failure.reason));
    else this.#failed(claimed, end.failure);
  }

  #done(nextTypes: readonly string[], ms: number): void {
    const { telemetry, messageType } = this.#options;
    this.#handled += 1;
    this.#slowestHandlerMs = Math.max(this.#slowestHandlerMs, ms);
    telemetry.count('Handled', 1, messageType);
    this.#nextTypes.add(nextTypes);
  }

  #leaseLost({ rowId, source, externalMessageId: messageId }: ClaimedInboxMessage): void {
    const { telemetry, messageType } = this.#options;
    this.#lost += 1;
    telemetry.count('LostLeases', 1, messageType);
    const text = 'a lease was lost while its message was handled: nothing of it was written';
    telemetry.logger.warn(text, { rowId, source, messageId, messageType });
  }

  #failed(claimed: ClaimedInboxMessage, failure: Failure): void {
    const { telemetry, messageType, retry } = this.#options;
    const { rowId, source, externalMessageId: messageId, attempt } = claimed;
    const { kind, reason } = failure;
    if (kind === 'unavailable') this.#unavailable ??= reason;
    const about = { rowId, source, messageId, messageType, attempt };
    telemetry.logger.warn('a message was not handled', { ...about, kind, reason });
    this.#settler.settle(claimed, verdictOf(failure, attempt, retry));
  }
}

/** Nobody knows what the handler did outside of the database: it isn't run again. */
function forAPerson(reason: string): Failure {
  return { kind: 'rejected', reason: `not tried again, as its handler's onLeaseLost says: ${reason}` };
}
