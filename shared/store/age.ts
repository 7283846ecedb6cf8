/** A moment, by the wall clock and by the process's own: either may stand still while a sandbox is frozen. */
export interface Instant {
  readonly wall: number;
  readonly monotonic: number;
}

/** Now. */
export function instant(): Instant {
  return { wall: Date.now(), monotonic: performance.now() };
}

/** Milliseconds since then, by whichever clock says more. */
export function since(then: Instant): number {
  return Math.max(Date.now() - then.wall, performance.now() - then.monotonic);
}
