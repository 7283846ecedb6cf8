/** Runs named steps in order, says what each did and how long it took, and counts. A failed step ends the run: the next ones build on it. */
export class Steps {
  #passed = 0;

  /** Runs one step; what it returns as text is said beside its name. */
  async step(name: string, work: () => Promise<string | undefined>): Promise<void> {
    const from = performance.now();
    try {
      const said = await work();
      const seconds = ((performance.now() - from) / 1000).toFixed(1);
      console.log(`✓ ${name}${said === undefined ? '' : `: ${said}`} (${seconds} s)`);
      this.#passed++;
    } catch (error) {
      console.log(`✗ ${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      throw new StepFailed(name, { cause: error });
    }
  }

  /** How many steps passed. */
  get passed(): number {
    return this.#passed;
  }
}

/** A step did not do what it should; its error has been said. */
export class StepFailed extends Error {
  override readonly name = 'StepFailed';
}

/** Fails the step with this text unless the condition holds. */
export function must(condition: boolean, otherwise: string): asserts condition {
  if (!condition) throw new Error(otherwise);
}

/** Asks again and again until the answer is not undefined; the error says what was waited for. */
export async function until<T>(what: string, seconds: number, ask: () => Promise<T | undefined>): Promise<T> {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > end) throw new Error(`${what}: not within ${seconds} s`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
