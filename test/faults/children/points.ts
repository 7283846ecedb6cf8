import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Where in a function's work something happens to its process. */
export type Place = 'entry' | 'stored' | 'written' | 'throws' | 'uncommitted' | 'unanswered' | 'committed';

/** What a message says of its own handling. */
export interface Fate {
  readonly n: number;
  /** Where it happens, once. Nothing does where this is left out. */
  readonly at?: Place;
  /** @default 'SIGKILL' */
  readonly how?: 'SIGKILL' | 'SIGSTOP';
  /** How long its handler takes. */
  readonly takesMs?: number;
  /** How often its handler holds it until the connection breaks. */
  readonly breaks?: number;
}

/** True for the first process of all that comes to this point. It leaves its id there. */
export function isFirst(point: string): boolean {
  try {
    const file = openSync(join(process.env['POINTS'] ?? '', point), 'wx');
    writeSync(file, String(process.pid));
    closeSync(file);
    return true;
  } catch {
    return false;
  }
}

/** Kills or stops this process, at once, where the message says that it happens here and it hasn't yet. */
export function meet(place: Place, { n, at, how = 'SIGKILL' }: Fate): void {
  if (at === place && isFirst(`${place}-${n}`)) process.kill(process.pid, how);
}

/** What the records of an SQS event say of their own handling. */
export function fatesOf(event: unknown): readonly Fate[] {
  const { Records = [] } = event as { readonly Records?: readonly { readonly body: string }[] };
  return Records.map(({ body }) => JSON.parse(body) as Fate);
}
