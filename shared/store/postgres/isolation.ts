import type pg from 'pg';

const SET = "SET default_transaction_isolation = 'read committed'";

/** What of `DISCARD ALL` concerns settings; the rest of it would drop our own planned statements too. */
const RESET = 'SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; RESET ALL';

/** Connections whose server, database or login has another default. */
const told = new WeakSet<pg.ClientBase>();

/**
 * Sees to READ COMMITTED for statements on autocommit, which take the session's default: on any other level two claims at
 * once end in 40001 instead of stepping over each other's rows. For each new connection that isn't behind a proxy, which
 * would pin it; there the login's own default has to be right, and the doctor looks at that.
 *
 * Not as a parameter at startup: poolers refuse those that they don't know. And asked before it is said, so that a pooler
 * nobody told us of hands on no setting of ours to other programs where the default is right, as it is nearly everywhere.
 */
export async function ensureReadCommitted(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query('SHOW default_transaction_isolation');
  if (rows[0]?.default_transaction_isolation === 'read committed') return;
  await client.query(SET);
  told.add(client);
}

/** The statement that undoes what a handler has set on the connection, and keeps what was set when it was opened. */
export function resetSettings(client: pg.ClientBase): string {
  return told.has(client) ? `${RESET}; ${SET}` : RESET;
}
