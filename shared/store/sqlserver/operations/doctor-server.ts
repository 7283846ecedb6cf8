import type { Check, Found } from '../../operations/examine.ts';
import { crowded, unencrypted } from '../../operations/findings.ts';
import { rowsOf } from '../../operations/rows.ts';
import { connection, database, oldTransactions } from '../sql/operations-doctor.ts';
import type { OperationsSource } from './session.ts';

/** Checks of the server, of the database's settings, and of the way to it. */
export function serverChecks(source: OperationsSource): readonly Check[] {
  return [
    { check: 'database', look: () => settings(source) },
    { check: 'connection', look: () => wire(source) },
    { check: 'old-transaction', look: () => longTransactions(source) },
  ];
}

async function longTransactions(source: OperationsSource): Promise<readonly Found[]> {
  return rowsOf(await source.query(oldTransactions)).map((row) => ({
    severity: 'warning',
    what: `session ${row.number('session')} of ${row.text('login')} (${row.text('program') || 'unnamed'}, ${row.text('status')}) has been in one transaction for ${row.number('seconds')} s: it holds its locks, and the log can't be cut`,
    todo: `find out whose it is; KILL ${row.number('session')} ends it`,
  }));
}

async function settings(source: OperationsSource): Promise<readonly Found[]> {
  const [row] = rowsOf(await source.query(database));
  if (row === undefined) return [];
  const found: Found[] = [];
  if (row.flag('read_only')) {
    found.push({
      severity: 'problem',
      what: 'this database is read-only here: nothing can be written through this connection',
      todo: "use the primary's endpoint, or set the database READ_WRITE",
    });
  }
  if (row.text('delayed_durability') !== 'DISABLED') {
    found.push({
      severity: row.text('delayed_durability') === 'FORCED' ? 'problem' : 'warning',
      what: `DELAYED_DURABILITY is ${row.text('delayed_durability')}: a commit that was confirmed can be lost with the server, messages and all`,
      todo: 'ALTER DATABASE CURRENT SET DELAYED_DURABILITY = DISABLED',
    });
  }
  if (row.flag('auto_close')) {
    found.push({
      severity: 'warning',
      what: 'AUTO_CLOSE is on: the first connection after a pause waits for the database to be opened',
      todo: 'ALTER DATABASE CURRENT SET AUTO_CLOSE OFF',
    });
  }
  return found;
}

async function wire(source: OperationsSource): Promise<readonly Found[]> {
  const [row] = rowsOf(await source.query(connection));
  if (row === undefined) return [];
  const local = /^(?:127\.|::1$|<local machine>)/.test(row.textOrNull('client') ?? '');
  const open = row.text('encrypted') !== 'TRUE' && !local;
  return [...(open ? [unencrypted] : []), ...crowded(row)];
}
