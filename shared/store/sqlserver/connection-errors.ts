/** The number of an error from the server. Texts are never matched: the server may speak another language. */
export function sqlNumber(error: unknown): number | undefined {
  let current = error as { number?: unknown; originalError?: unknown; cause?: unknown } | null | undefined;
  for (let depth = 0; depth < 5 && typeof current === 'object' && current !== null; depth++) {
    // mssql wraps what tedious says, and hangs it on `originalError`.
    if (typeof current.number === 'number') return current.number;
    current = (current.originalError ?? current.cause) as typeof current;
  }
  return undefined;
}

/** True where this session was chosen to end a deadlock: its batch was rolled back, and may run again. */
export function deadlock(error: unknown): boolean {
  return sqlNumber(error) === 1205;
}

/** Numbers that end the session, or refuse to begin one, before anything was done. */
const lost = new Set([
  596, 6005, 17142, 17187, 17197, 40613, 40197, 10053, 10054, 10060, 3906, 976, 978, 983,
]);

/** True where the server said that this connection is of no use any more, instead of doing what it was asked. */
export function refusedByServer(error: unknown): boolean {
  const number = sqlNumber(error);
  return number !== undefined && lost.has(number);
}

/**
 * True where login was refused: a wrong password, or one that a rotation has changed (18456), or an expired one.
 * tedious says so with a code where the number doesn't come through.
 */
export function loginRefused(error: unknown): boolean {
  const number = sqlNumber(error);
  if (number !== undefined)
    return number === 18456 || number === 18452 || number === 18487 || number === 18488;
  return codes(error).includes('ELOGIN');
}

/** Codes of a driver that lost its connection or gave up waiting; there is no number then, since the server said nothing. */
const silent = [
  'ECONNRESET',
  'ESOCKET',
  'ETIMEOUT',
  'ECONNCLOSED',
  'ECLOSE',
  'ENOTOPEN',
  'EINSTLOOKUP',
  'ECONNREFUSED',
  'EPIPE',
  'ENOTFOUND',
];

/** True where the connection, not the statement, is at fault. */
export function connectionLost(error: unknown): boolean {
  return sqlNumber(error) === undefined && codes(error).some((code) => silent.includes(code));
}

function codes(error: unknown): string[] {
  const found: string[] = [];
  let current = error as { code?: unknown; originalError?: unknown; cause?: unknown } | null | undefined;
  for (let depth = 0; depth < 5 && typeof current === 'object' && current !== null; depth++) {
    if (typeof current.code === 'string') found.push(current.code);
    current = (current.originalError ?? current.cause) as typeof current;
  }
  return found;
}
