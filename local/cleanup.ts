/** What was started, to be ended in the opposite order. Something may be added before it is fully up, so that an interrupted start leaves nothing behind. */
export class Cleanup {
  readonly #steps: (() => Promise<unknown>)[] = [];
  #running: Promise<void> | undefined;

  /** To be done at the end, before everything that was added earlier; at once where the end has begun. */
  defer(step: () => Promise<unknown>): void {
    if (this.#running) void step().catch(() => undefined);
    else this.#steps.push(step);
  }

  /** Ends everything, once; a step that fails does not keep the others from their turn. */
  async run(): Promise<void> {
    this.#running ??= this.#all();
    await this.#running;
  }

  async #all(): Promise<void> {
    const failures: unknown[] = [];
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      await step().catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw new AggregateError(failures, `stopping failed: ${failures.join('; ')}`);
  }
}
