/** The five-character code of an error from the server. Texts are never matched: the server may speak another language. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E') ? code : undefined;
}

// Class 08: connection exceptions; 57P01–57P05: the server ended the session; 25006: this is a standby by now.
const lost = /^(?:08...|57P0[1-5]|25006)$/;

/**
 * True where the server said that this connection is of no use any more. It says so instead of doing what it was
 * asked, so the statement has had no effect.
 */
export function refusedByServer(error: unknown): boolean {
  const state = sqlState(error);
  return state !== undefined && lost.test(state);
}

/** True where login was refused: wrong password, or none of the user's. */
export function loginRefused(error: unknown): boolean {
  const state = sqlState(error);
  return state === '28P01' || state === '28000';
}
