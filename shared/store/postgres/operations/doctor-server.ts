import { SchemaError } from '../../../message/errors.ts';
import type { Finding } from '../../../operations/responses.ts';
import { checkSchema } from '../check.ts';
import { connection, oldSnapshots } from '../sql/operations-doctor.ts';
import type { Check } from './doctor.ts';
import { rowsOf } from './session.ts';

/** Checks of the server and of the way to it. */
export const serverChecks: readonly Check[] = [
  {
    check: 'schema',
    look: async ({ source, names }) => {
      try {
        await checkSchema(source, names);
        return [];
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        return [
          {
            severity: 'problem',
            what: error.message,
            todo: 'run "relaybox migrate", or give the grant that is named',
          },
        ];
      }
    },
  },
  {
    check: 'connection',
    look: async ({ source }) => {
      const [row] = rowsOf(await source.query(connection));
      if (row === undefined) return [];
      const found: Omit<Finding, 'check'>[] = [];
      if (row.flag('standby')) {
        found.push({
          severity: 'problem',
          what: 'this server is a standby: nothing can be written through it',
          todo: "use the writer's endpoint",
        });
      }
      if (!row.flag('ssl') && !row.flag('local')) {
        found.push({
          severity: 'warning',
          what: 'this connection is not encrypted',
          todo: 'connect with TLS, and set rds.force_ssl = 1 on the server',
        });
      }
      const [used, most] = [row.number('connections'), row.number('max_connections')];
      if (used > most * 0.85) {
        found.push({
          severity: 'warning',
          what: `${used} of ${most} connections are in use`,
          todo: 'lower the concurrency of functions or their pools, or put a proxy before the database',
        });
      }
      const isolation = row.text('isolation');
      if (isolation !== 'read committed') {
        found.push({
          severity: 'warning',
          what: `the default isolation of the login "${row.text('login')}" is ${isolation}: behind a proxy claims, ingest and relays end in 40001 when several run at once (on a connection of their own they say READ COMMITTED)`,
          todo: `ALTER ROLE "${row.text('login')}" SET default_transaction_isolation = 'read committed', for the login of each function behind a proxy`,
        });
      }
      return found;
    },
  },
  {
    check: 'old-transaction',
    look: async ({ source }) => {
      const [row] = rowsOf(await source.query(oldSnapshots));
      if (row === undefined) return [];
      const found: Omit<Finding, 'check'>[] = sessions(row.raw('old')).map((session) => ({
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
    },
  },
];

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
