/**
 * An end that may only come early. What is left is the smaller of two clocks' answers, since either may stand
 * still while a sandbox is frozen. Zero and negative are valid answers.
 */
export class Deadline {
  readonly #monotonicEnd: number;
  readonly #wallEnd: number;

  private constructor(ms: number, startedMonotonic: number, startedWall: number) {
    this.#monotonicEnd = startedMonotonic + ms;
    this.#wallEnd = startedWall + ms;
  }

  /** A deadline so many milliseconds from now. */
  static in(ms: number): Deadline {
    return new Deadline(ms, performance.now(), Date.now());
  }

  /** Milliseconds left; negative once it has passed. */
  remainingMs(): number {
    return Math.min(this.#monotonicEnd - performance.now(), this.#wallEnd - Date.now());
  }

  /** Whichever of the two comes first. */
  earlier(other: Deadline): Deadline {
    return this.remainingMs() <= other.remainingMs() ? this : other;
  }
}
