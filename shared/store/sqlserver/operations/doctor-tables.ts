import type { Check, Found } from '../../operations/examine.ts';
import { counted, foreignWorkers, orphans, stranded } from '../../operations/findings.ts';
import { type Row, rowsOf } from '../../operations/rows.ts';
import { checkSchema } from '../check.ts';
import { indexName, type Names } from '../names.ts';
import {
  brokenIndexes,
  foreignWorker,
  keysMissing,
  obstacles,
  unnumbered,
} from '../sql/operations-doctor.ts';
import { orphanedKeys } from '../sql/operations-outbox.ts';
import type { OperationsSource } from './session.ts';

/** Checks of the tables and their rows. */
export function tableChecks(source: OperationsSource, names: Names): readonly Check[] {
  const read = async (sql: string, values: unknown[] = []): Promise<readonly Row[]> =>
    rowsOf(await source.query(sql, values));
  return [
    { check: 'index', look: () => indexes(source, names) },
    { check: 'obstacle', look: () => inTheWay(source, names) },
    {
      check: 'foreign-worker',
      look: async () => foreignWorkers((await read(foreignWorker(names)))[0], 'LockedUntilUtc'),
    },
    {
      check: 'unnumbered',
      look: async () =>
        counted((await read(unnumbered(names)))[0], (count) => ({
          severity: 'warning',
          what: `${count} unfinished outbox messages lack a place in the order or a bucket: no relay takes them`,
          todo: 'run "relaybox migrate": it numbers them; then stop whoever inserts nulls into Sequence, Bucket or Held',
        })),
    },
    { check: 'orphaned', look: async () => orphans(await read(orphanedKeys(names), ['', '', 1000])) },
    { check: 'stranded-key', look: async () => stranded((await read(keysMissing(names)))[0]) },
  ];
}

/** Indexes that the migrations make, by the table they are on. */
export function expectedIndexes(
  names: Names,
  seedIdentity: boolean,
): readonly { table: string; index: string }[] {
  const { outboxTable, inboxTable } = names.plain;
  const of = (table: string, plain: string, kinds: readonly string[]) =>
    kinds.map((kind) => ({ table, index: indexName(plain, kind) }));
  const inbox = ['identity', 'ready', 'waiting', 'key', 'failed', 'ended'];
  return [
    ...of(names.outbox, outboxTable, ['due', 'key', 'ended']),
    ...of(names.inbox, inboxTable, seedIdentity ? inbox.slice(1) : inbox),
    ...of(names.keys, 'InboxKeys', ['due', 'waiting']),
    ...of(names.receipts, 'InboxReceipts', ['age']),
  ];
}

async function indexes(source: OperationsSource, names: Names): Promise<readonly Found[]> {
  const { seedIdentity } = await checkSchema(source, names);
  const wanted = JSON.stringify(expectedIndexes(names, seedIdentity));
  return rowsOf(await source.query(brokenIndexes, [wanted])).map((row) => ({
    severity: 'problem',
    what: `index ${row.text('name')} of ${row.text('table')} is ${row.text('fault')}`,
    todo:
      row.text('fault') === 'missing'
        ? 'run "relaybox migrate"; where it says that nothing is pending, somebody dropped the index: create it by the statement that "relaybox migrate --sql" prints'
        : `ALTER INDEX [${row.text('name')}] ON ${row.text('table')} REBUILD`,
  }));
}

async function inTheWay(source: OperationsSource, names: Names): Promise<readonly Found[]> {
  // The outbox is not among them: what is done there is written so that a trigger may be on it.
  const tables = [names.inbox, names.keys, names.leases, names.lanes, names.inboxLanes];
  const rows = rowsOf(await source.query(obstacles, [JSON.stringify(tables), names.inbox]));
  return rows.map((row) =>
    row.text('kind') === 'trigger'
      ? {
          severity: 'problem' as const,
          what: `trigger ${row.text('name')} on ${row.text('table')}: SQL Server then refuses the claims there (error 334)`,
          todo: 'disable or drop it; what it does can be done by a handler, or from the rows after they ended',
        }
      : {
          severity: 'warning' as const,
          what: `${row.text('name')} was created with QUOTED_IDENTIFIER OFF and names ${row.text('table')}: what it writes there is refused (error 1934)`,
          todo: 'create it again in a session with SET QUOTED_IDENTIFIER ON',
        },
  );
}
