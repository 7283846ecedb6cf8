import type { Check, Found } from '../../operations/examine.ts';
import { counted, foreignWorkers, orphans, stranded } from '../../operations/findings.ts';
import { type Row, rowsOf } from '../../operations/rows.ts';
import { checkSchema } from '../check.ts';
import type { Names } from '../names.ts';
import { brokenIndexes, foreignWorker, keysMissing, unnumbered, vacuum } from '../sql/operations-doctor.ts';
import { orphanedKeys } from '../sql/operations-outbox.ts';
import { outboxLanes } from '../sql/operations-status-outbox.ts';
import { inTransaction, type OperationsSource, reading } from './session.ts';

/** What the checks need. */
interface DoctorContext {
  readonly source: OperationsSource;
  readonly names: Names;
}

/** Checks of the tables and their rows. */
export function tableChecks(source: OperationsSource, names: Names): readonly Check[] {
  const context = { source, names };
  const one = async (sql: string): Promise<Row | undefined> => (await read(context, sql, []))[0];
  return [
    { check: 'index', look: () => indexes(context) },
    { check: 'vacuum', look: () => vacuuming(context) },
    {
      check: 'foreign-worker',
      look: async () => foreignWorkers(await one(foreignWorker(names)), 'locked_until_utc'),
    },
    { check: 'unnumbered', look: () => placeless(context) },
    {
      check: 'orphaned',
      look: async () => orphans(await read(context, orphanedKeys(names), ['', '', 1000])),
    },
    { check: 'stranded-key', look: async () => stranded(await one(keysMissing(names))) },
  ];
}

async function placeless(context: DoctorContext): Promise<readonly Found[]> {
  const { names } = context;
  const lanes = (await read(context, outboxLanes(names), [500])).map((row) => row.text('destination'));
  const [row] = await read(context, unnumbered(names), [lanes]);
  return counted(row, (count) => ({
    severity: 'warning',
    what: `${count} unfinished outbox messages have no place in the order: they are published last`,
    todo: 'run "relaybox migrate": it numbers them; then stop whoever inserts a null sequence',
  }));
}

/** Names of the indexes that the migrations make. */
function expectedIndexes(names: Names, seedIdentity: boolean): readonly string[] {
  return Object.entries(names.placeholders)
    .filter(([name]) => name.includes('_index_') && !(seedIdentity && name === 'inbox_index_identity'))
    .map(([, index]) => `${names.schema}.${index}`);
}

async function indexes(context: DoctorContext): Promise<readonly Found[]> {
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

async function vacuuming(context: DoctorContext): Promise<readonly Found[]> {
  const rows = await read(context, vacuum, [[context.names.outbox, context.names.inbox]]);
  return rows.flatMap((row): readonly Found[] => {
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

async function read(
  { source }: DoctorContext,
  sql: string,
  values: readonly unknown[],
): Promise<readonly Row[]> {
  return await inTransaction(source, reading, async (client) => rowsOf(await client.query(sql, [...values])));
}

function ago(row: Row): string {
  const seconds = row.numberOrNull('vacuumed_seconds');
  return seconds === null ? 'never' : `${seconds} s ago`;
}
