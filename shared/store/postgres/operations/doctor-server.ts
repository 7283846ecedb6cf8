import type { Check, Found } from '../../operations/examine.ts';
import { crowded, unencrypted } from '../../operations/findings.ts';
import { rowsOf } from '../../operations/rows.ts';
import { connection, oldSnapshots } from '../sql/operations-doctor.ts';
import type { OperationsSource } from './session.ts';

/** Checks of the server and of the way to it. */
export function serverChecks(source: OperationsSource): readonly Check[] {
  return [
    { check: 'connection', look: () => wire(source) },
    { check: 'old-transaction', look: () => oldTransactions(source) },
  ];
}

async function wire(source: OperationsSource): Promise<readonly Found[]> {
  const [row] = rowsOf(await source.query(connection));
  if (row === undefined) return [];
  const found: Found[] = [];
  if (row.flag('standby')) {
    found.push({
      severity: 'problem',
      what: 'this server is a standby: nothing can be written through it',
      todo: "use the writer's endpoint",
    });
  }
  if (!row.flag('ssl') && !row.flag('local')) found.push(unencrypted);
  found.push(...crowded(row));
  const isolation = row.text('isolation');
  if (isolation !== 'read committed') {
    found.push({
      severity: 'warning',
      what: `the default isolation of the login "${row.text('login')}" is ${isolation}: behind a proxy claims, ingest and relays end in 40001 when several run at once (on a connection of their own they say READ COMMITTED)`,
      todo: `ALTER ROLE "${row.text('login')}" SET default_transaction_isolation = 'read committed', for the login of each function behind a proxy`,
    });
  }
  return found;
}

async function oldTransactions(source: OperationsSource): Promise<readonly Found[]> {
  const [row] = rowsOf(await source.query(oldSnapshots));
  if (row === undefined) return [];
  const found: Found[] = sessions(row.raw('old')).map((session) => ({
    severity: 'warning',
    what: `session ${session.pid} of ${session.user} (${session.application || 'unnamed'}, ${session.state}) has been in one transaction for ${session.seconds} s: no dead row can be removed, and reads get slower`,
    todo: `find out whose it is; SELECT pg_terminate_backend(${session.pid}) ends it`,
  }));
  const prepared = row.number('prepared');
  if (prepared > 0) {
    found.push({
      severity: 'warning',
      what: `${prepared} prepared transactions are older than five minutes`,
      todo: 'look at pg_prepared_xacts, and commit them or roll them back',
    });
  }
  const slots = row.raw('slots');
  if (Array.isArray(slots) && slots.length > 0) {
    found.push({
      severity: 'warning',
      what: `replication slots that nobody reads hold dead rows back: ${slots.join(', ')}`,
      todo: 'start their reader, or drop them with pg_drop_replication_slot',
    });
  }
  const hidden = row.number('hidden');
  if (hidden > 0 && found.length === 0) {
    found.push({
      severity: 'unknown',
      what: `${hidden} sessions of other users can't be looked at`,
      todo: 'GRANT pg_read_all_stats to this user to have them checked too',
    });
  }
  return found;
}

interface Session {
  readonly pid: number;
  readonly user: string;
  readonly application: string;
  readonly state: string;
  readonly seconds: number;
}

function sessions(value: unknown): readonly Session[] {
  return Array.isArray(value) ? (value as readonly Session[]) : [];
}
