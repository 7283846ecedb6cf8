import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '../delivery/error-text.ts';
import type { Telemetry } from '../delivery/telemetry.ts';
import type {
  ClaimedInboxMessage,
  FailedHandling,
  InboxSettleResult,
  InboxStore,
} from '../store/inbox-store.ts';
import type { OnFailedKey } from '../store/outbox-store.ts';
import type { Verdict } from './attempt.ts';

/** What a settler writes with. */
export interface SettlerOptions {
  readonly store: Pick<InboxStore, 'markFailed' | 'release' | 'reachable'>;
  readonly messageType: string;
  readonly onFailedKey: OnFailedKey;
  readonly telemetry: Telemetry;
  /** Shutdown: then there is no waiting for a database that is away. */
  readonly signal: AbortSignal;
  /** Milliseconds for which it may be waited for. 0 or less: no more. */
  readonly leftMs: () => number;
  /** Types that are due next in keys that went on. */
  readonly onNextTypes: (types: readonly string[]) => void;
}

/** Times that one write is tried: what fails though the database is there would fail for ever. */
const TRIES = 3;
const ASK_EVERY_MS = 500;
/** The store answers within seconds whether it is reachable. */
const PATIENCE_MS = 30_000;

/**
 * Writes what was not handled. A failure is written at once, so that it isn't lost with the function; what fails while
 * a write is under way goes together into the next one, so that an outage of all doesn't write row by row.
 */
export class Settler {
  readonly counts = { retried: 0, failed: 0, released: 0, lost: 0 };
  /** Why settling itself failed: the leases run out then, and count an attempt. */
  trouble: string | undefined;
  readonly #options: SettlerOptions;
  #failures: FailedHandling[] = [];
  #releases: ClaimedInboxMessage[] = [];
  #running: Promise<void> | undefined;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  settle(message: ClaimedInboxMessage, verdict: Verdict): void {
    if (verdict.write === 'release') this.#releases.push(message);
    else this.#failures.push({ message, reason: verdict.reason, retryInSeconds: verdict.retryInSeconds });
    this.#running ??= this.#write().finally(() => {
      this.#running = undefined;
    });
  }

  /** Waits until everything is written. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  async #write(): Promise<void> {
    // Lets what ends in the same moment come along.
    await Promise.resolve();
    while (this.#failures.length + this.#releases.length > 0) {
      const failures = this.#failures.splice(0);
      const releases = this.#releases.splice(0);
      const { store, onFailedKey } = this.#options;
      if (failures.length > 0) {
        await this.#take('Retried', failures.length, () => store.markFailed(failures, { onFailedKey }));
      }
      if (releases.length > 0) {
        await this.#take('Released', releases.length, () => store.release(releases));
      }
    }
  }

  async #take(
    metric: 'Retried' | 'Released',
    asked: number,
    write: () => Promise<InboxSettleResult>,
  ): Promise<void> {
    const { telemetry, messageType, onNextTypes } = this.#options;
    try {
      const { settled, ended, lost, nextTypes } = await this.#lasting(write);
      const kept = settled.length - ended.length;
      if (metric === 'Retried') this.counts.retried += kept;
      else this.counts.released += kept;
      this.counts.failed += ended.length;
      this.counts.lost += lost.length;
      telemetry.count(metric, kept, messageType);
      if (ended.length > 0) telemetry.count('Failed', ended.length, messageType);
      if (lost.length > 0) {
        telemetry.count('LostLeases', lost.length, messageType);
        telemetry.logger.warn('messages were not settled: their leases had been lost', { messages: lost });
      }
      onNextTypes(nextTypes);
    } catch (error) {
      this.trouble = errorText(error);
      telemetry.logger.error('messages could not be settled: their leases will run out', {
        messages: asked,
        reason: this.trouble,
      });
    }
  }

  /**
   * Writes again where the database was away: a lease that runs out instead keeps its message for the rest of the
   * invocation, and counts an attempt that was none. What was written and got no answer is then found lost, not written twice.
   */
  async #lasting(write: () => Promise<InboxSettleResult>): Promise<InboxSettleResult> {
    for (let tries = 1; ; tries++) {
      try {
        return await write();
      } catch (error) {
        if (tries === TRIES || !(await this.#isBack())) throw error;
      }
    }
  }

  /** Waits until the database takes work; false where the time is up before. */
  async #isBack(): Promise<boolean> {
    const { store, signal, leftMs } = this.#options;
    while (!signal.aborted && leftMs() > 0) {
      const ms = Math.min(leftMs(), PATIENCE_MS);
      if (await Promise.race([store.reachable(), sleep(ms, false, { ref: false })])) return true;
      await sleep(Math.max(0, Math.min(ASK_EVERY_MS, leftMs())));
    }
    return false;
  }
}
