import type { Finding } from '../../../operations/responses.ts';
import type { CheckOf } from '../../operations/examine.ts';
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
import type { DoctorContext } from './doctor.ts';

type Found = Omit<Finding, 'check'>;

/** Checks of the tables and their rows. */
export const tableChecks: readonly CheckOf<DoctorContext>[] = [
  { check: 'index', look: indexes },
  { check: 'obstacle', look: inTheWay },
  { check: 'foreign-worker', look: foreign },
  {
    check: 'unnumbered',
    look: async ({ source, names }) =>
      counted(rowsOf(await source.query(unnumbered(names)))[0], (count) => ({
        severity: 'warning',
        what: `${count} unfinished outbox messages lack a place in the order or a bucket: no relay takes them`,
        todo: 'run "relaybox migrate": it numbers them; then stop whoever inserts nulls into Sequence, Bucket or Held',
      })),
  },
  {
    check: 'orphaned',
    look: async ({ source, names }) => {
      const rows = rowsOf(await source.query(orphanedKeys(names), ['', '', 1000]));
      return some(rows.filter((row) => row.flag('orphaned')).length, (count) => ({
        severity: 'warning',
        what: `${count} keys of the outbox have held messages with nothing before them (a key that is just being published looks the same)`,
        todo: 'maintenance lets them go within its next cycle; if they are still here then, look at its log',
      }));
    },
  },
  {
    check: 'stranded-key',
    look: async ({ source, names }) =>
      counted(rowsOf(await source.query(keysMissing(names)))[0], (count) => ({
        severity: 'problem',
        what: `${count} keyed inbox messages are in a key without a row: no handler finds them`,
        todo: 'maintenance mends that within its next cycle; if they are still here then, look at its log',
      })),
  },
];

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

async function indexes({ source, names }: DoctorContext): Promise<readonly Found[]> {
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

async function inTheWay({ source, names }: DoctorContext): Promise<readonly Found[]> {
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

async function foreign({ source, names }: DoctorContext): Promise<readonly Found[]> {
  const [row] = rowsOf(await source.query(foreignWorker(names)));
  const [claimed, published] = [row?.number('claimed') ?? 0, row?.number('published') ?? 0];
  return some(claimed + published, () => ({
    severity: 'problem',
    what: `another program's outbox worker is at work on this table: ${claimed} rows are in its claim now, ${published} of the last hour's published rows still carry one (Relaybox never sets LockedUntilUtc in the outbox)`,
    todo: "turn that program's outbox worker off: both at once cost duplicates and order. Its services may go on inserting",
  }));
}

function counted(row: Row | undefined, finding: (count: number) => Found): readonly Found[] {
  return some(row?.number('count') ?? 0, finding);
}

function some(count: number, finding: (count: number) => Found): readonly Found[] {
  return count === 0 ? [] : [finding(count)];
}
