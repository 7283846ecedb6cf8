import type { Finding } from '../../../operations/responses.ts';
import { checkSchema } from '../check.ts';
import type { Names } from '../names.ts';
import { brokenIndexes, foreignWorker, keysMissing, unnumbered, vacuum } from '../sql/operations-doctor.ts';
import { orphanedKeys } from '../sql/operations-outbox.ts';
import { outboxLanes } from '../sql/operations-status-outbox.ts';
import type { Check, DoctorContext } from './doctor.ts';
import { inTransaction, type Row, reading, rowsOf } from './session.ts';

/** Checks of the tables and their rows. */
export const tableChecks: readonly Check[] = [
  { check: 'index', look: indexes },
  { check: 'vacuum', look: vacuuming },
  { check: 'foreign-worker', look: foreign },
  {
    check: 'unnumbered',
    look: async (context) => {
      const lanes = (await read(context, outboxLanes(context.names), [500])).map((row) =>
        row.text('destination'),
      );
      const [row] = await read(context, unnumbered(context.names), [lanes]);
      return counted(row, (count) => ({
        severity: 'warning',
        what: `${count} unfinished outbox messages have no place in the order: they are published last`,
        todo: 'run "relaybox migrate": it numbers them; then stop whoever inserts a null sequence',
      }));
    },
  },
  {
    check: 'orphaned',
    look: async (context) => {
      const rows = await read(context, orphanedKeys(context.names), ['', '', 1000]);
      const orphans = rows.filter((row) => row.flag('orphaned')).length;
      if (orphans === 0) return [];
      return [
        {
          severity: 'warning',
          what: `${orphans} keys of the outbox have held messages with nothing before them (a key that is just being published looks the same)`,
          todo: 'maintenance lets them go within its next cycle; if they are still here then, look at its log',
        },
      ];
    },
  },
  {
    check: 'stranded-key',
    look: async (context) => {
      const [row] = await read(context, keysMissing(context.names), []);
      return counted(row, (count) => ({
        severity: 'problem',
        what: `${count} keyed inbox messages are in a key without a row: no handler finds them`,
        todo: 'maintenance mends that within its next cycle; if they are still here then, look at its log',
      }));
    },
  },
];

/** Names of the indexes that the migrations make. */
function expectedIndexes(names: Names, seedIdentity: boolean): readonly string[] {
  return Object.entries(names.placeholders)
    .filter(([name]) => name.includes('_index_') && !(seedIdentity && name === 'inbox_index_identity'))
    .map(([, index]) => `${names.schema}.${index}`);
}

async function indexes(context: DoctorContext): Promise<readonly Omit<Finding, 'check'>[]> {
  const { names } = context;
  const { seedIdentity: seed } = await checkSchema(context.source, names);
  const tables = [names.outbox, names.inbox, names.keys, names.receipts];
  const rows = await read(context, brokenIndexes, [tables, expectedIndexes(names, seed)]);
  return rows.map((row) => ({
    severity: row.text('fault') === 'missing' ? 'problem' : 'warning',
    what: `index ${row.text('name')} is ${row.text('fault')}`,
    todo:
      row.text('fault') === 'missing'
        ? 'run "relaybox migrate"; where it says that nothing is pending, somebody dropped the index: create it by the statement that "relaybox migrate --sql" prints'
        : 'an interrupted build left it: drop it with DROP INDEX CONCURRENTLY, then run "relaybox migrate"',
  }));
}

async function vacuuming(context: DoctorContext): Promise<readonly Omit<Finding, 'check'>[]> {
  const rows = await read(context, vacuum, [[context.names.outbox, context.names.inbox]]);
  return rows.flatMap((row): readonly Omit<Finding, 'check'>[] => {
    const name = row.text('name');
    if (!row.flag('on') || row.flag('disabled')) {
      return [
        {
          severity: 'problem',
          what: `autovacuum is off for ${name}: it only grows, and every claim gets slower`,
          todo: `ALTER TABLE ${name} RESET (autovacuum_enabled), and autovacuum = on on the server`,
        },
      ];
    }
    const [dead, live] = [row.numberOrNull('dead') ?? 0, row.numberOrNull('live') ?? 0];
    if (dead < 100_000 || dead < live * 0.5) return [];
    return [
      {
        severity: 'warning',
        what: `${name} has ${dead} dead rows beside ${live} live ones; last vacuum ${ago(row)}`,
        todo: 'see whether an old transaction holds them (old-transaction), else give autovacuum more workers or less delay',
      },
    ];
  });
}

async function foreign(context: DoctorContext): Promise<readonly Omit<Finding, 'check'>[]> {
  const [row] = await read(context, foreignWorker(context.names), []);
  const [claimed, published] = [row?.number('claimed') ?? 0, row?.number('published') ?? 0];
  if (claimed + published === 0) return [];
  return [
    {
      severity: 'problem',
      what: `another program's outbox worker is at work on this table: ${claimed} rows are in its claim now, ${published} of the last hour's published rows still carry one (Relaybox never sets locked_until_utc in the outbox)`,
      todo: "turn that program's outbox worker off: both at once cost duplicates and order. Its services may go on inserting",
    },
  ];
}

async function read(
  { source }: DoctorContext,
  sql: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  return await inTransaction(source, reading, async (client) => rowsOf(await client.query(sql, [...values])));
}

function counted(
  row: Row | undefined,
  finding: (count: number) => Omit<Finding, 'check'>,
): readonly Omit<Finding, 'check'>[] {
  const count = row?.number('count') ?? 0;
  return count === 0 ? [] : [finding(count)];
}

function ago(row: Row): string {
  const seconds = row.numberOrNull('vacuumed_seconds');
  return seconds === null ? 'never' : `${seconds} s ago`;
}
