import { storable } from '../message/text.ts';
import { withoutSecrets } from './secrets.ts';

const CAUSES = 3;
/** A huge text isn't searched as a whole: what is kept of it is far less. */
const SEARCHED = 20_000;

/**
 * What a person needs of an error, for a column or a log: names, messages and causes, no stack, storable, and without
 * what looks like a secret. Never throws, whatever was thrown.
 */
export function errorText(error: unknown): string {
  const parts: string[] = [];
  let current = error;
  for (let depth = 0; depth <= CAUSES && current !== undefined && current !== null; depth++) {
    parts.push(described(current));
    current = causeOf(current);
  }
  return storable(
    withoutSecrets(parts.join(' ← ').slice(0, SEARCHED)) ||
      `nothing was thrown (${error === null ? 'null' : typeof error})`,
  );
}

// Whatever is thrown may be a Proxy, or have accessors that throw: each look at it can.
function causeOf(error: unknown): unknown {
  try {
    return error instanceof Error ? error.cause : undefined;
  } catch {
    return undefined;
  }
}

function described(error: unknown): string {
  try {
    if (!(error instanceof Error))
      return typeof error === 'string' ? error : (JSON.stringify(error) ?? typeof error);
    const { code } = error as { readonly code?: unknown };
    // Ours are sentences for a person as they are.
    if (typeof code === 'string' && code.startsWith('RELAYBOX_')) return String(error.message);
    const known = typeof code === 'string' || typeof code === 'number' ? ` (${code})` : '';
    return `${error.name}: ${error.message}${known}`;
  } catch {
    return `something that can't be described (${typeof error})`;
  }
}
