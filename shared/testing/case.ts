/** One behaviour that a store must show, whatever test runner runs it: `for (const c of cases) it(c.name, c.run)`. */
export interface ContractCase {
  /** The behaviour, as a sentence. */
  readonly name: string;
  /** The number of the promise that it keeps, 1 to 7, as the guarantees' page lists them. */
  readonly promise: number;
  /** Sets up a namespace of its own, runs, and cleans up. Rejects with an AssertionError where the store breaks the contract. */
  run(): Promise<void>;
}

/** A case before it knows the store it will run against. */
export interface CaseOf<Harness> {
  readonly name: string;
  readonly promise: number;
  readonly body: (harness: Harness) => Promise<void>;
}

/** Binds cases to a store. Each run gets a harness of its own and closes it. */
export function bind<Harness extends { close(): Promise<void> }>(
  cases: readonly CaseOf<Harness>[],
  setup: () => Promise<Harness>,
): ContractCase[] {
  return cases.map(({ name, promise, body }) => ({
    name: `promise ${promise}: ${name}`,
    promise,
    async run() {
      const harness = await setup();
      try {
        await body(harness);
      } finally {
        await harness.close();
      }
    },
  }));
}

/** A lease that no case outlives: a slow machine must not lose it. */
export const LONG_MS = 60_000;
/** A lease that is to run out. Only its end is ever asserted. */
export const SHORT_MS = 120;

/** Waits so many milliseconds. */
export async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** Polls until the probe answers something, and fails with the given words where it doesn't in time. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined | false>,
  timeoutMs = 10_000,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const answer = await probe();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > end) throw new Error(`did not happen within ${timeoutMs} ms: ${what}`);
    await sleep(20);
  }
}

/** Numbers in [0, 1) from a seed, so that a failing walk can be walked again (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
