import { defaults } from '../delivery/defaults.ts';
import { type Logger, silent } from '../delivery/telemetry.ts';

/** Sends a wake's body to a queue, to arrive after so many whole seconds. */
export type SendWake = (body: string, delaySeconds: number) => Promise<void>;

/**
 * Tells a worker that there is work. A wake is a hint: what is lost costs latency up to the next sweep and nothing
 * else. So nothing here rejects, and nothing takes longer than 200 ms of its caller's time.
 */
export interface Waker {
  /** Wakes now. `wakeHops` counts the wakes before this one that brought no progress. */
  wake(wakeHops?: number): Promise<void>;
  /** Wakes when what waits comes due; leaves it to the sweep where that is more than 15 minutes away. */
  wakeIn(seconds: number, wakeHops?: number): Promise<void>;
}

/** How a waker throttles, and whom it tells. */
export interface WakerOptions {
  /** Within so long after a wake the next one is sent delayed, and those after that are covered by it. @default 200 */
  readonly windowMs?: number;
  /** The caller waits so long at most; the send itself goes on. @default 200 */
  readonly timeoutMs?: number;
  readonly logger?: Logger;
}

/** The longest delay that SQS knows, and so of a wake. The wake queue must retain for longer. */
export const LATEST_SECONDS = 900;
/** The delay of the trailing wake: the shortest there is. */
const TRAILING_SECONDS = 1;

/** Makes a waker of one queue. Keep it for the process: it throttles. */
export function createWaker(send: SendWake, options: WakerOptions = {}): Waker {
  return new ThrottledWaker(send, options);
}

/** Wakes the handlers of these message types, each by its own queue. A type without one is left to the sweep. */
export async function wakeTypes(
  wakers: ReadonlyMap<string, Waker>,
  messageTypes: Iterable<string>,
  wakeHops = 0,
): Promise<void> {
  const wanted = [...new Set(messageTypes)].map((type) => wakers.get(type)?.wake(wakeHops));
  await Promise.all(wanted);
}

/** A wake's body on its queue. */
export function wakeBody(wakeHops: number): string {
  return JSON.stringify({ wakeHops });
}

/**
 * What a wake's body says: 0 where it says nothing, `{}`, since anybody may send a wake. Undefined where it is no wake, but
 * a message that was meant for somebody else.
 */
export function readWakeHops(body: string): number | undefined {
  const wake = parsed(body);
  if (typeof wake !== 'object' || wake === null || Array.isArray(wake)) return undefined;
  const { wakeHops, ...others } = wake as { readonly wakeHops?: unknown };
  if (Object.keys(others).length > 0) return undefined;
  return typeof wakeHops === 'number' && Number.isSafeInteger(wakeHops) && wakeHops > 0 ? wakeHops : 0;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** A wake that was sent and not yet heard to have failed. */
interface Sent {
  readonly wakeHops: number;
  readonly at: Moment;
  /** By the wall clock: when it arrives. */
  readonly arrivesAt: number;
  readonly done: Promise<void>;
}

/** Both clocks, since either may stand still while a sandbox is frozen. */
interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

class ThrottledWaker implements Waker {
  readonly #send: SendWake;
  readonly #windowMs: number;
  readonly #timeoutMs: number;
  readonly #logger: Logger;
  #leading: Sent | undefined;
  #trailing: Sent | undefined;
  #later: Sent | undefined;

  constructor(send: SendWake, options: WakerOptions) {
    this.#send = send;
    this.#windowMs = options.windowMs ?? defaults.wakeWindowMs;
    this.#timeoutMs = options.timeoutMs ?? defaults.wakeTimeoutMs;
    this.#logger = options.logger ?? silent.logger;
  }

  async wake(wakeHops = 0): Promise<void> {
    if (!this.#leading || elapsedMs(this.#leading.at) >= this.#windowMs) {
      this.#trailing = undefined;
      const sent = this.#begin(0, wakeHops, () => {
        if (this.#leading === sent) this.#leading = undefined;
      });
      this.#leading = sent;
      return this.#wait(sent);
    }
    // The work of this caller may have been committed just after the first wake's drain looked: never drop it.
    if (!this.#trailing || this.#trailing.wakeHops > wakeHops) {
      const sent = this.#begin(TRAILING_SECONDS, wakeHops, () => {
        if (this.#trailing === sent) this.#trailing = undefined;
      });
      this.#trailing = sent;
    }
    return this.#wait(this.#trailing);
  }

  async wakeIn(seconds: number, wakeHops = 0): Promise<void> {
    if (!(seconds <= LATEST_SECONDS)) return;
    const delaySeconds = Math.ceil(seconds);
    if (delaySeconds <= 0) return this.wake(wakeHops);
    const arrivesAt = Date.now() + delaySeconds * 1000;
    const covered = this.#later && this.#later.wakeHops <= wakeHops ? this.#later.arrivesAt - arrivesAt : -1;
    // One on its way that arrives at this time, or less than a second after, will do.
    if (covered >= 0 && covered < 1000) return;
    const sent = this.#begin(delaySeconds, wakeHops, () => {
      if (this.#later === sent) this.#later = undefined;
    });
    this.#later = sent;
    return this.#wait(sent);
  }

  #begin(delaySeconds: number, wakeHops: number, failed: () => void): Sent {
    const at = now();
    const done = this.#attempt(delaySeconds, wakeHops).catch((error: unknown) => {
      failed();
      const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      this.#logger.warn('A wake could not be sent; the sweep will find the messages', { reason });
    });
    return { wakeHops, at, arrivesAt: at.wall + delaySeconds * 1000, done };
  }

  async #attempt(delaySeconds: number, wakeHops: number): Promise<void> {
    await this.#send(wakeBody(wakeHops), delaySeconds);
  }

  async #wait(sent: Sent): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#timeoutMs);
    });
    await Promise.race([sent.done, late]);
    clearTimeout(timer);
  }
}

function now(): Moment {
  return { monotonic: performance.now(), wall: Date.now() };
}

function elapsedMs(since: Moment): number {
  return Math.max(performance.now() - since.monotonic, Date.now() - since.wall);
}
