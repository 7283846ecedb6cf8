import { errorText } from '../delivery/error-text.ts';
import type { Telemetry } from '../delivery/telemetry.ts';

/**
 * Wakes the types that come next in keys that went on: each at its first mention in a batch, so that it doesn't wait for
 * the batch, and once more at the batch's end where it was mentioned again. A wake is a hint: one that fails is left to the sweep.
 */
export class NextTypes {
  readonly #wake: ((messageTypes: readonly string[]) => Promise<void>) | undefined;
  readonly #own: string;
  readonly #telemetry: Telemetry;
  readonly #woken = new Set<string>();
  readonly #again = new Set<string>();
  readonly #running = new Set<Promise<void>>();

  constructor(
    own: string,
    telemetry: Telemetry,
    wake: ((messageTypes: readonly string[]) => Promise<void>) | undefined,
  ) {
    this.#own = own;
    this.#telemetry = telemetry;
    this.#wake = wake;
  }

  add(types: readonly string[]): void {
    // The run's own type needs no wake: the run looks again.
    const others = [...new Set(types)].filter((type) => type !== this.#own);
    for (const type of others) if (this.#woken.has(type)) this.#again.add(type);
    this.#send(others.filter((type) => !this.#woken.has(type)));
    for (const type of others) this.#woken.add(type);
  }

  /** The batch is over. */
  flush(): void {
    this.#send([...this.#again]);
    this.#again.clear();
    this.#woken.clear();
  }

  async sent(): Promise<void> {
    await Promise.all(this.#running);
  }

  #send(types: readonly string[]): void {
    if (types.length === 0 || this.#wake === undefined) return;
    const sending = this.#wake(types).catch((error: unknown) => {
      this.#telemetry.logger.debug('a wake failed; the sweep will find the messages', {
        reason: errorText(error),
      });
    });
    this.#running.add(sending);
    sending.finally(() => this.#running.delete(sending));
  }
}
