import { backoffSeconds } from '../delivery/backoff.ts';
import { Deadline } from '../delivery/deadline.ts';
import { defaults } from '../delivery/defaults.ts';
import type { Publisher } from '../publish/publisher.ts';
import type {
  ClaimedOutboxMessage,
  LaneLease,
  Probe,
  ReadResult,
  SettleResult,
} from '../store/outbox-store.ts';
import type { RelayContext } from './relay-options.ts';
import { type BatchOutcome, type SendOptions, sendBatch } from './send.ts';

/** How one visit to a lane ended. */
export interface LaneVisit {
  /** Messages whose outcome was written. */
  readonly settled: number;
  /** Set where the destination failed, so that the lane is to be opened. */
  readonly unavailable: BatchOutcome['unavailable'];
}

/** How long a lane's batches take, as far as this run of the relay has seen: what one session learns the next one knows. */
export interface Pace {
  /** Milliseconds that the latest batch took; 0 before the first. */
  latestMs: number;
}

/** Silence for so long is evidence that a broker is down. A call that was cut off before, since time was up, is none. */
const EVIDENCE_MS = 5_000;
/** A batch is begun where so many times as long is left as the slowest one took. */
export const ROOM = 1.5;

/**
 * One lease of a lane's buckets, from its taking to its release: read, publish, settle, until the buckets are empty
 * or the time is up. The next read is under way while a batch is on the wire, and a batch's settle while the next is.
 */
export class LaneSession {
  readonly #context: RelayContext;
  readonly #publisher: Publisher;
  readonly #pace: Pace;
  #lease: LaneLease;
  /** How long we trust the lease: from before it was taken, so never longer than the database does. */
  #trusted: Deadline;
  /** Ids under way: of the batch being settled, and of the one on the wire. */
  #underWay: readonly (readonly string[])[] = [];
  /** A settle let followers go that no read has seen. */
  #freed = false;
  /** The read that is under way while a batch is on the wire. */
  #ahead: Promise<ReadResult> | undefined;
  /** The settle that is under way while the next batch is on the wire. */
  #settling: Promise<SettleResult> | undefined;
  #count = 0;

  constructor(
    context: RelayContext,
    publisher: Publisher,
    lease: LaneLease,
    how: { readonly trusted: Deadline; readonly pace: Pace },
  ) {
    this.#context = context;
    this.#publisher = publisher;
    this.#lease = lease;
    this.#trusted = how.trusted;
    this.#pace = how.pace;
  }

  /** Milliseconds a lease is trusted for: the margin is for a settle on its way. */
  static trustMs(leaseMs: number): number {
    return leaseMs - Math.min(2_000, leaseMs / 5);
  }

  /** Publishes until nothing is due in these buckets, the slice or the deadline ends, or the destination fails. */
  async drain(slice: Deadline): Promise<LaneVisit> {
    try {
      const unavailable = await this.#pump(slice);
      await this.#settled();
      return { settled: this.#count, unavailable };
    } finally {
      // Whatever ended it, nothing of ours is left under way on these leases when they are given back.
      await Promise.allSettled([this.#ahead, this.#settling]);
      await this.#context.store.release(this.#lease);
    }
  }

  async #pump(slice: Deadline): Promise<BatchOutcome['unavailable']> {
    let slowestMs = 0;
    this.#ahead = this.#read();
    while (this.#lease.buckets.length > 0) {
      const { messages, more } = await this.#ahead;
      if (this.#context.signal.aborted || slice.remainingMs() <= 0) return undefined;
      // Of what earlier sessions took, only the invocation's end is to be feared: another lease is no longer than this one.
      if (this.#trusted.remainingMs() <= ROOM * slowestMs) return undefined;
      const expectedMs = Math.max(slowestMs, this.#pace.latestMs);
      if (this.#context.deadline.remainingMs() <= ROOM * expectedMs) return undefined;
      if (messages.length === 0) {
        await this.#settled();
        // Empty with more to come: the read was busy setting followers of blocked keys aside.
        if (!this.#freed && !more) return undefined;
        this.#readAgain();
        continue;
      }
      const began = performance.now();
      this.#underWay = [...this.#underWay.slice(-1), messages.map(({ id }) => id)];
      this.#ahead = this.#read();
      const outcome = await this.#send(messages);
      await this.#settled();
      this.#settling = this.#settle(messages, outcome);
      this.#pace.latestMs = performance.now() - began;
      slowestMs = Math.max(slowestMs, this.#pace.latestMs);
      if (outcome.unavailable || decidedOf(outcome) === 0) return outcome.unavailable;
      // What was read ahead may be of the key of a message that was not published: begin anew once that is written.
      if (outcome.published.length < messages.length) {
        await this.#settled();
        await this.#ahead;
        this.#readAgain();
      }
    }
    return undefined;
  }

  /** Reads in the name of a probe: of an open lane, which otherwise answers nothing. */
  async readFor(
    probe: Probe,
    which: { readonly limit: number } & (
      | { readonly only: readonly string[] }
      | { readonly except: readonly string[] }
    ),
  ): Promise<readonly ClaimedOutboxMessage[]> {
    const { maxBytes } = this.#context.options;
    return (await this.#context.store.read(this.#lease, { maxBytes, probe, ...which })).messages;
  }

  /** Sends a batch and writes its outcome, with nothing else under way. `judge` may think again before it is written. */
  async sendAndSettle(
    messages: readonly ClaimedOutboxMessage[],
    changes: Partial<SendOptions> = {},
    judge: (outcome: BatchOutcome) => BatchOutcome = (outcome) => outcome,
  ): Promise<BatchOutcome> {
    const outcome = judge(await this.#send(messages, changes));
    this.#apply(await this.#settle(messages, outcome));
    return outcome;
  }

  async release(): Promise<void> {
    await this.#context.store.release(this.#lease);
  }

  #read(): Promise<ReadResult> {
    const { batchSize, maxBytes } = this.#context.options;
    const reading = this.#context.store.read(this.#lease, {
      limit: batchSize,
      maxBytes,
      except: this.#underWay.flat(),
    });
    // It may fail while nobody waits for it yet; whoever awaits it still gets the error.
    reading.catch(() => undefined);
    return reading;
  }

  async #send(
    messages: readonly ClaimedOutboxMessage[],
    changes: Partial<SendOptions> = {},
  ): Promise<BatchOutcome> {
    const { options, signal, telemetry } = this.#context;
    telemetry.count('Claimed', messages.length, this.#lease.destination);
    return sendBatch(messages, this.#publisher, {
      parallelism: options.parallelism,
      onFailedKey: options.onFailedKey(this.#lease.destination),
      maxHops: options.maxHops,
      budgetMs: () => Math.min(options.sendTimeoutMs, this.#leftMs()),
      evidenceMs: Math.min(options.sendTimeoutMs, EVIDENCE_MS, LaneSession.trustMs(options.leaseMs) / 2),
      signal,
      ...changes,
    });
  }

  #settle(messages: readonly ClaimedOutboxMessage[], outcome: BatchOutcome): Promise<SettleResult> {
    const { options, store, telemetry } = this.#context;
    const lane = this.#lease.destination;
    const decided = decidedOf(outcome);
    telemetry.count('Published', outcome.published.length, lane);
    if (messages.length > decided) telemetry.count('Released', messages.length - decided, lane);
    const trusted = Deadline.in(LaneSession.trustMs(options.leaseMs));
    const buckets = this.#lease.buckets.length;
    const settling = store
      .settle(
        this.#lease,
        {
          published: outcome.published,
          failed: outcome.failed.map(({ message, reason }) => ({
            message,
            reason,
            retryInSeconds: this.#retryInSeconds(message.retryCount + 1),
          })),
          rejected: outcome.rejected,
        },
        {
          leaseMs: options.leaseMs,
          afterSuccess: options.afterSuccess,
          onFailedKey: options.onFailedKey(lane),
        },
      )
      .then((result) => {
        // Where a bucket was lost, what is on the wire may be of it: then the old trust has to do.
        if (result.buckets.length === buckets) this.#trusted = trusted;
        const settled = new Set(result.settled);
        const ended = new Set(result.ended);
        const retried = outcome.failed.filter(({ message: { id } }) => settled.has(id) && !ended.has(id));
        telemetry.count('Retried', retried.length, lane);
        // An alarm on attempts names a lane; which message it is, only this says.
        for (const { message, reason } of outcome.failed.filter(({ message: { id } }) => settled.has(id))) {
          const { id: messageId, messageType, retryCount } = message;
          const about = { messageId, messageType, destination: lane, attempt: retryCount + 1, reason };
          telemetry.logger.warn('a message was not published', about);
        }
        return result;
      });
    settling.catch(() => undefined);
    return settling;
  }

  /** What failed without a usable answer may have arrived: an ordered transport is asked again while it would still know. */
  #retryInSeconds(failure: number): number {
    const { retry } = this.#context.options;
    if (!this.#publisher.limits.ordered) return backoffSeconds(failure, retry);
    const maxSeconds = Math.min(retry.maxSeconds, defaults.orderedMaxRetrySeconds);
    return backoffSeconds(failure, { ...retry, maxSeconds });
  }

  /** Waits for the settle under way, if there is one. */
  async #settled(): Promise<void> {
    const settling = this.#settling;
    this.#settling = undefined;
    if (settling) this.#apply(await settling);
  }

  /** Takes in what a settle said. */
  #apply(result: SettleResult): void {
    const { telemetry } = this.#context;
    const lane = this.#lease.destination;
    this.#count += result.settled.length;
    if (result.ended.length > 0) telemetry.count('Failed', result.ended.length, lane);
    if (result.lost.length > 0) {
      telemetry.count('LostLeases', result.lost.length, lane);
      telemetry.logger.warn('lost leases: messages were not settled, another relay or a person has them', {
        destination: lane,
        lost: result.lost.length,
      });
    }
    if (result.buckets.length < this.#lease.buckets.length) {
      this.#lease = { ...this.#lease, buckets: result.buckets };
    }
    if (result.freed.length > 0) this.#freed = true;
  }

  /** Reads with nothing under way. */
  #readAgain(): void {
    this.#underWay = [];
    this.#freed = false;
    this.#ahead = this.#read();
  }

  /** What is left of the lease and of the invocation. */
  #leftMs(): number {
    return Math.min(this.#trusted.remainingMs(), this.#context.deadline.remainingMs());
  }
}

/** Messages of a batch that something was decided about. */
export function decidedOf(outcome: BatchOutcome): number {
  return outcome.published.length + outcome.failed.length + outcome.rejected.length;
}
