import { Deadline } from '../delivery/deadline.ts';
import { errorText } from '../delivery/error-text.ts';
import type { Failure } from '../delivery/failure.ts';
import type { InboxStore, Transaction, TransactionLimits } from '../store/inbox-store.ts';
import { classify } from './attempt.ts';

/** How one attempt ended. */
export type AttemptEnd<T> =
  | { readonly kind: 'committed'; readonly value: T }
  /** The work itself said that nothing of it must stay. */
  | { readonly kind: 'undone'; readonly value: T }
  | {
      readonly kind: 'failure';
      readonly failure: Failure;
      /** The work was cut off, or told to stop: nobody knows how far it came with what is outside of the database. */
      readonly cut?: true;
    };

/** What an attempt is given. */
export interface AttemptOptions<Tx> {
  readonly store: Pick<InboxStore<Tx>, 'begin' | 'reachable'>;
  /** Milliseconds after which nothing of the attempt can take effect any more. */
  readonly limitMs: number;
  /**
   * True where a new invocation could give it no more time: then running out of it is a failure, and counts. Else it
   * is an interruption, and the next attempt has more.
   */
  readonly fullTime: boolean;
  /** Shutdown. What runs may go on for `drainMs`. */
  readonly signal: AbortSignal;
  readonly drainMs: number;
}

/** The work of an attempt. It begins the transaction, once, when it needs one; that is committed where it answers `commit`. */
export type AttemptWork<Tx, T> = (
  begin: () => Promise<Transaction<Tx>>,
  signal: AbortSignal,
) => Promise<{ readonly commit: boolean; readonly value: T }>;

/**
 * Runs work in a transaction of its own, bounded in time. When the time is nearly up the work is told, by its signal;
 * when it is up the connection is closed under it, so that work which goes on can have no effect. Never rejects.
 */
export async function transact<Tx, T>(
  options: AttemptOptions<Tx>,
  work: AttemptWork<Tx, T>,
): Promise<AttemptEnd<T>> {
  const attempt = new Attempt(options, work);
  try {
    return await Promise.race([attempt.run(), attempt.timeUp]);
  } finally {
    attempt.forget();
  }
}

const TIME_UP = 'the time for this message is up';

class Attempt<Tx, T> {
  /** Answers once the time is up and the transaction is out of the work's reach. */
  readonly timeUp: Promise<AttemptEnd<T>>;
  readonly #options: AttemptOptions<Tx>;
  readonly #work: AttemptWork<Tx, T>;
  readonly #told = new AbortController();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #shutdown = (): void => this.#schedule(Math.min(this.#options.drainMs, this.#options.limitMs));
  readonly #limit: Deadline;
  #transaction: Transaction<Tx> | undefined;
  #beginFailed = false;
  #over = false;
  #committing: Promise<AttemptEnd<T>> | undefined;
  #end: (end: AttemptEnd<T>) => void = () => undefined;

  constructor(options: AttemptOptions<Tx>, work: AttemptWork<Tx, T>) {
    this.#options = options;
    this.#work = work;
    this.#limit = Deadline.in(options.limitMs);
    this.timeUp = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#schedule(options.limitMs);
    if (options.signal.aborted) this.#shutdown();
    else options.signal.addEventListener('abort', this.#shutdown, { once: true });
  }

  forget(): void {
    this.#options.signal.removeEventListener('abort', this.#shutdown);
    for (const timer of this.#timers) clearTimeout(timer);
  }

  async run(): Promise<AttemptEnd<T>> {
    try {
      const { commit, value } = await this.#work(() => this.#begin(), this.#told.signal);
      if (this.#over) return this.#outOfTime();
      if (this.#transaction?.endedInside?.() !== undefined) return await this.#failed(undefined);
      if (!commit) {
        await this.#transaction?.rollback();
        return { kind: 'undone', value };
      }
      this.#committing = this.#commit(value);
      return await this.#committing;
    } catch (error) {
      return await this.#failed(error);
    }
  }

  async #begin(): Promise<Transaction<Tx>> {
    if (this.#over) throw new Error(TIME_UP);
    let transaction: Transaction<Tx>;
    try {
      transaction = await this.#options.store.begin(limitsOf(this.#limit.remainingMs()));
    } catch (error) {
      this.#beginFailed = true;
      throw error;
    }
    if (this.#over) {
      // Nobody waits for this any more, and nobody may use it.
      await transaction.destroy();
      throw new Error(TIME_UP);
    }
    this.#transaction = transaction;
    return transaction;
  }

  /** A commit without an answer may have happened. It is not tried again, and what is written of it is fenced. */
  async #commit(value: T): Promise<AttemptEnd<T>> {
    try {
      await this.#transaction?.commit();
      return { kind: 'committed', value };
    } catch (error) {
      return await this.#judged(error);
    }
  }

  async #failed(error: unknown): Promise<AttemptEnd<T>> {
    if (this.#over) return this.#outOfTime();
    if (this.#beginFailed) return unavailable(error);
    // What failed before there was a transaction says nothing of the database.
    if (this.#transaction === undefined) return { kind: 'failure', failure: classify(error) };
    const ended = this.#endedInside();
    if (ended) await this.#transaction.destroy();
    else await this.#transaction.rollback();
    return ended ?? (await this.#judged(error));
  }

  /**
   * Whose fault it was. A connection that broke, or a commit without an answer, may be the message's own doing each time:
   * only where no other connection is answered either is it the database that went away.
   */
  async #judged(error: unknown): Promise<AttemptEnd<T>> {
    if (this.#over) return this.#outOfTime();
    if (!(await this.#options.store.reachable())) return unavailable(error);
    // Told to stop, it stopped: that is no failure of its own, whatever it threw.
    if (this.#told.signal.aborted) return this.#outOfTime();
    return { kind: 'failure', failure: classify(error) };
  }

  #schedule(afterMs: number): void {
    // A timer of more than 24 days would go off at once.
    const ms = Math.max(0, Math.min(afterMs, 2_147_483_647));
    const graceMs = Math.min(1_000, ms / 10);
    const tell = (): void => this.#told.abort(new Error(TIME_UP));
    this.#timers.push(setTimeout(tell, ms - graceMs));
    this.#timers.push(setTimeout(() => this.#cut(), ms));
  }

  async #cut(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#told.abort(new Error(TIME_UP));
    await this.#transaction?.destroy();
    this.#end((await this.#committing) ?? this.#outOfTime());
  }

  /** What the work has committed itself can't be taken back: done again it might be there twice, so a person decides. */
  #endedInside(): AttemptEnd<T> | undefined {
    const ended = this.#transaction?.endedInside?.();
    if (ended === undefined) return undefined;
    return { kind: 'failure', failure: { kind: 'rejected', reason: `not tried again: ${ended}` } };
  }

  #outOfTime(): AttemptEnd<T> {
    const ended = this.#endedInside();
    if (ended) return ended;
    const { fullTime, limitMs, signal } = this.#options;
    if (signal.aborted) return cut('interrupted', 'the process was told to stop');
    if (!fullTime) return cut('interrupted', 'the time of its invocation was up');
    const seconds = Math.round(limitMs / 100) / 10;
    const reason = `the handler did not end within ${seconds} s, all the time that its function and its lease leave it`;
    return cut('failed', reason);
  }
}

/** The server ends by itself what a killed or frozen function leaves; a statement ends early enough to be told about. */
function limitsOf(limitMs: number): TransactionLimits {
  const ms = Math.max(1, Math.floor(limitMs));
  const statementMs = Math.max(1, ms - Math.min(500, Math.floor(ms / 10)));
  return { idleMs: ms, lockMs: statementMs, statementMs };
}

function unavailable<T>(error: unknown): AttemptEnd<T> {
  return { kind: 'failure', failure: { kind: 'unavailable', reason: errorText(error) } };
}

function cut<T>(kind: 'interrupted' | 'failed', reason: string): AttemptEnd<T> {
  return { kind: 'failure', failure: { kind, reason }, cut: true };
}
