import type { Deadline } from '../../delivery/deadline.ts';
import type { Row } from './rows.ts';

/** Keys that one page of a walk has. */
export const pageKeys = 1000;

interface WalkParts {
  /** The columns that say where a row is, in the pages' order. */
  readonly place: readonly string[];
  /** The page behind a place; the empty texts are before the first. */
  readonly page: (place: readonly string[]) => Promise<readonly Row[]>;
  /** Mends what is wrong in a page; answers how much. */
  readonly work: (rows: readonly Row[]) => Promise<number>;
}

/**
 * A walk over all keys, page by page, that keeps its place for as long as the process lives: what one cycle has no time
 * for is what the next one begins with. Begun anew each time, the last keys of a long table would never be looked at.
 */
export class Walk {
  readonly #parts: WalkParts;
  #behind: readonly string[];

  constructor(parts: WalkParts) {
    this.#parts = parts;
    this.#behind = parts.place.map(() => '');
  }

  /** One page. At the end the next step is the first page again. */
  async step(): Promise<{ readonly mended: number; readonly end: boolean }> {
    const { place, page, work } = this.#parts;
    const rows = await page(this.#behind);
    const last = rows.length < pageKeys ? undefined : rows.at(-1);
    // Before the work: a page that fails each time must not hold up those behind it.
    this.#behind = place.map((column) => last?.text(column) ?? '');
    return { mended: await work(rows), end: last === undefined };
  }
}

/** Walks in turns, a page each, until all are at their end or the time is up. */
export async function walkAll(walks: readonly Walk[], deadline: Deadline): Promise<number> {
  let mended = 0;
  const going = new Set(walks);
  while (going.size > 0) {
    for (const walk of going) {
      if (deadline.remainingMs() <= 0) return mended;
      const step = await walk.step();
      mended += step.mended;
      if (step.end) going.delete(walk);
    }
  }
  return mended;
}
