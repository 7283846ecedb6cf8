import { errorText } from '../delivery/error-text.ts';
import type { Failure } from '../delivery/failure.ts';
import { packRounds } from '../delivery/packing.ts';
import { inParallel } from '../delivery/parallel.ts';
import { Rejected } from '../message/errors.ts';
import type { Publisher, SendOutcome } from '../publish/publisher.ts';
import type { ClaimedOutboxMessage, OnFailedKey } from '../store/outbox-store.ts';

/** What became of a batch on the wire. A message in none of the lists was not sent, or its answer decides nothing about it: it stays due. */
export interface BatchOutcome {
  readonly published: readonly ClaimedOutboxMessage[];
  readonly failed: readonly { readonly message: ClaimedOutboxMessage; readonly reason: string }[];
  readonly rejected: readonly { readonly message: ClaimedOutboxMessage; readonly reason: string }[];
  /** Set where the destination, not a message, is at fault. `tried` were sent alone and failed, with no success after. */
  readonly unavailable: { readonly reason: string; readonly tried: readonly string[] } | undefined;
}

/** How a batch is sent. */
export interface SendOptions {
  /** Calls under way at once. */
  readonly parallelism: number;
  readonly onFailedKey: OnFailedKey;
  /** Messages caused by messages so many times over are a loop. */
  readonly maxHops: number;
  /** Milliseconds the next call may take: less than is left of the lease and of the invocation. 0 or less: don't begin it. */
  readonly budgetMs: () => number;
  /** Milliseconds of silence that tell something of the broker. A call that had less is interrupted, and no evidence. */
  readonly evidenceMs: number;
  readonly signal: AbortSignal;
  /** Ids to send alone, as those are that have failed before. */
  readonly suspects?: ReadonlySet<string>;
  /** When the broker last answered, by `performance.now()`: then silence alone doesn't look like an outage at once. */
  readonly answered?: number;
}

/** Doubtful messages that one batch sends again one by one; the rest stay due. */
const ISOLATED_AT_MOST = 20;

const unmentioned: SendOutcome = { kind: 'failed', reason: 'the broker did not mention this entry' };

interface Parcel {
  readonly message: ClaimedOutboxMessage;
  readonly entry: unknown;
  readonly bytes: number;
  readonly key: string | null;
  readonly alone: boolean;
}

/**
 * Sends a batch and tells an outage from a poison message by evidence: a message is charged with the broker's silence
 * only if it was sent alone, and another one, sent after that, was answered. Until then the destination is what failed.
 */
export async function sendBatch(
  batch: readonly ClaimedOutboxMessage[],
  publisher: Publisher,
  options: SendOptions,
): Promise<BatchOutcome> {
  const sending = new Sending(publisher, options);
  const parcels = batch.flatMap((message) => sending.prepare(message));
  for (const round of packRounds(parcels, publisher.limits)) {
    await inParallel(round, options.parallelism, (call) => sending.send(call));
  }
  await sending.isolate();
  return sending.outcome();
}

class Sending {
  readonly #publisher: Publisher;
  readonly #options: SendOptions;
  readonly #published: ClaimedOutboxMessage[] = [];
  readonly #failed: { message: ClaimedOutboxMessage; reason: string }[] = [];
  readonly #rejected: { message: ClaimedOutboxMessage; reason: string }[] = [];
  /** Keys of which an earlier message was not published: later ones must not pass it. */
  readonly #stopped = new Set<string>();
  /** Sent alone, no usable answer: when that became known. */
  readonly #silent: { parcel: Parcel; at: number; failure: Failure }[] = [];
  /** Were in a call that failed as a whole, so that the fault may be a neighbour's. */
  #doubtful: { parcel: Parcel; failure: Failure }[] = [];
  #silentCalls = 0;
  #laneWide: Failure | undefined;
  /** When the latest call began that the broker answered. */
  #answered: number;

  constructor(publisher: Publisher, options: SendOptions) {
    this.#publisher = publisher;
    this.#options = options;
    this.#answered = options.answered ?? Number.NEGATIVE_INFINITY;
  }

  prepare(message: ClaimedOutboxMessage): Parcel[] {
    const hops = Number(message.headers['relaybox-hops'] ?? 0);
    if (hops > this.#options.maxHops) {
      this.#reject(
        message,
        `caused by a message ${hops} times over, which looks like a loop (limit ${this.#options.maxHops})`,
      );
      return [];
    }
    try {
      const prepared = this.#publisher.prepare(message);
      const alone = message.retryCount > 0 || (this.#options.suspects?.has(message.id) ?? false);
      return [{ message, ...prepared, key: message.partitionKey, alone }];
    } catch (error) {
      if (error instanceof Rejected) this.#reject(message, error.message);
      else {
        // A fault of the publisher's that this message brings out: it waits, and the others go on.
        this.#failed.push({ message, reason: errorText(error) });
        if (message.partitionKey !== null) this.#stopped.add(message.partitionKey);
      }
      return [];
    }
  }

  async send(call: readonly Parcel[]): Promise<void> {
    const parcels = call.filter((parcel) => parcel.key === null || !this.#stopped.has(parcel.key));
    if (parcels.length === 0) return;
    const budgetMs = this.#options.budgetMs();
    if (budgetMs <= 0 || this.#options.signal.aborted || this.#looksDown()) {
      this.#stop(parcels);
      return;
    }
    const began = performance.now();
    const answer = await this.#call(parcels, budgetMs);
    const how = { began, alone: parcels.length === 1 };
    if (!('kind' in answer)) {
      const outcomes = parcels.map((_, index) => answer[index] ?? unmentioned);
      for (const [index, parcel] of parcels.entries()) {
        this.#record(parcel, outcomes[index] ?? unmentioned, how);
      }
      // With status 200, but as silent as an outage.
      if (!how.alone && outcomes.every(({ kind }) => kind === 'unavailable')) this.#silentCalls++;
    } else if (how.alone || answer.kind === 'interrupted' || answer.laneWide) {
      for (const parcel of parcels) this.#record(parcel, answer, how);
    } else {
      this.#stop(parcels);
      if (answer.kind === 'unavailable') this.#silentCalls++;
      else this.#answered = Math.max(this.#answered, began);
      this.#doubtful.push(...parcels.map((parcel) => ({ parcel, failure: answer })));
    }
  }

  /** Sends the doubtful one by one, unless all the evidence says outage: then that would only hammer the broker. */
  async isolate(): Promise<void> {
    const outage =
      this.#answered === Number.NEGATIVE_INFINITY &&
      this.#doubtful.every((d) => d.failure.kind === 'unavailable');
    if (this.#laneWide || outage) return;
    const doubtful = this.#doubtful.slice(0, ISOLATED_AT_MOST);
    const rest = this.#doubtful.slice(ISOLATED_AT_MOST);
    let inARow = 0;
    while (
      doubtful.length > 0 &&
      inARow < 2 &&
      this.#options.budgetMs() > 0 &&
      !this.#options.signal.aborted
    ) {
      const { parcel } = doubtful.shift() as { parcel: Parcel };
      if (parcel.key !== null) this.#stopped.delete(parcel.key);
      const before = this.#silent.length;
      await this.send([parcel]);
      inARow = this.#silent.length > before ? inARow + 1 : 0;
    }
    // What was not reached is no evidence of an outage: it stays due. Two silences in a row are.
    this.#doubtful = inARow >= 2 ? [...doubtful, ...rest] : [];
  }

  outcome(): BatchOutcome {
    const tried: string[] = [];
    let last: Failure | undefined = this.#laneWide ?? this.#doubtful.at(-1)?.failure;
    for (const { parcel, at, failure } of this.#silent) {
      if (this.#answered >= at) {
        this.#failed.push({ message: parcel.message, reason: `${failure.reason} (others passed)` });
      } else {
        tried.push(parcel.message.id);
        last ??= failure;
      }
    }
    return {
      published: this.#published,
      failed: this.#failed,
      rejected: this.#rejected,
      unavailable: last && { reason: last.reason, tried },
    };
  }

  async #call(parcels: readonly Parcel[], budgetMs: number): Promise<readonly SendOutcome[] | Failure> {
    const timeout = AbortSignal.timeout(Math.ceil(budgetMs));
    const signal = AbortSignal.any([timeout, this.#options.signal]);
    try {
      // The race bounds a publisher that does not heed its signal.
      return await Promise.race([
        this.#publisher.send(
          parcels.map((parcel) => parcel.entry),
          { signal },
        ),
        aborted(signal),
      ]);
    } catch (error) {
      if (this.#options.signal.aborted) return { kind: 'interrupted', reason: 'the relay was told to stop' };
      const reason = `no answer within ${Math.round(budgetMs)} ms`;
      if (timeout.aborted)
        return { kind: budgetMs < this.#options.evidenceMs ? 'interrupted' : 'unavailable', reason };
      return this.#publisher.classify(error);
    }
  }

  #record(parcel: Parcel, outcome: SendOutcome, call: { began: number; alone: boolean }): void {
    const { message } = parcel;
    if (outcome.kind !== 'unavailable' && outcome.kind !== 'interrupted') {
      this.#answered = Math.max(this.#answered, call.began);
    }
    switch (outcome.kind) {
      case 'published':
        this.#published.push(message);
        return;
      case 'rejected':
        this.#reject(message, outcome.reason);
        return;
      case 'failed':
        this.#failed.push({ message, reason: outcome.reason });
        break;
      case 'unavailable':
        if (outcome.laneWide) this.#laneWide = outcome;
        else if (call.alone) {
          this.#silentCalls++;
          this.#silent.push({ parcel, at: performance.now(), failure: outcome });
        } else this.#doubtful.push({ parcel, failure: outcome });
        break;
      case 'interrupted':
        break;
    }
    this.#stop([parcel]);
  }

  #reject(message: ClaimedOutboxMessage, reason: string): void {
    this.#rejected.push({ message, reason });
    if (message.partitionKey !== null && this.#options.onFailedKey === 'block')
      this.#stopped.add(message.partitionKey);
  }

  #stop(parcels: readonly Parcel[]): void {
    for (const { key } of parcels) if (key !== null) this.#stopped.add(key);
  }

  /** Two calls without an answer, and none with one: more of them would tell nothing new. */
  #looksDown(): boolean {
    if (this.#laneWide) return true;
    return this.#answered === Number.NEGATIVE_INFINITY && this.#silentCalls >= 2;
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
