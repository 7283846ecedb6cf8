import {
  inboxKeyDigest,
  inboxLaneDigest,
  keyBucket,
  type Names,
  quoted,
} from '../../../shared/store/sqlserver/names.ts';
import type { Dialect } from './dialect.ts';
import type { Kind, Table } from './tables.ts';

/** The tables' names in statements. */
export function tableNames(names: Names): Record<Table, string> {
  const { outbox, inbox, leases, lanes, keys, inboxLanes, receipts, workers } = names;
  return {
    ...{ outbox, inbox, leases, lanes, keys, inboxLanes, receipts, workers },
    archive: names.outboxArchive,
    effects: 'dbo.Effects',
  };
}

/** How the gateway speaks to SQL Server. */
export function sqlServerDialect(names: Names): Dialect {
  const tables = tableNames(names);
  return {
    table: (table) => tables[table],
    target: pascal,
    // A table of another program's may have these empty.
    column(table, column) {
      if (column === 'held') return 'ISNULL([Held], 0)';
      return table === 'inbox' && column === 'consumer' ? "ISNULL([Consumer], N'')" : pascal(column);
    },
    selected,
    as: quoted,
    placeholder: (place) => `@p${place}`,
    fromNow(seconds, bind) {
      // In two steps: the milliseconds of a year are more than an INT.
      const whole = Math.trunc(seconds);
      const rest = Math.round((seconds - whole) * 1_000);
      return `DATEADD(millisecond, ${bind(rest)}, DATEADD(second, ${bind(whole)}, SYSDATETIMEOFFSET()))`;
    },
    secondsUntil: (expression) => `DATEDIFF_BIG(millisecond, SYSDATETIMEOFFSET(), ${expression}) / 1000.0E0`,
    bound: (value, kind) => (kind === 'json' && typeof value === 'object' ? JSON.stringify(value) : value),
    derived,
    counted: (change) => `${change}; SELECT @@ROWCOUNT AS [changed]`,
    emptied: (emptied) => emptied.map((table) => `DELETE FROM ${table};`).join(' '),
  };
}

/** `next_attempt_at_utc` is `NextAttemptAtUtc` here. */
function pascal(column: string): string {
  return quoted(column.replace(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase()));
}

function selected(expression: string, kind: Kind): string {
  if (kind === 'guid') return `LOWER(CONVERT(NVARCHAR(36), ${expression}))`;
  if (kind === 'digits') return `CONVERT(NVARCHAR(20), ${expression})`;
  if (kind !== 'instant') return expression;
  const text = `REPLACE(CONVERT(NVARCHAR(23), CONVERT(DATETIME2(3), SWITCHOFFSET(${expression}, '+00:00')), 121), N' ', N'T') + N'Z'`;
  // The first year stands for "never".
  return `CASE WHEN YEAR(${expression}) > 1 THEN ${text} END`;
}

/** Buckets and digests: the same expressions as the tables' own, over what is written. */
function derived(table: Table, written: Readonly<Record<string, string>>): Record<string, string> {
  const { consumer = '[Consumer]', partition_key: key, source } = written;
  if (table === 'outbox' && key !== undefined && key !== 'NULL') return { '[Bucket]': keyBucket(key) };
  if (table === 'inboxLanes' && written['message_type'] !== undefined) {
    return { '[LaneDigest]': inboxLaneDigest(consumer, written['message_type']) };
  }
  if (table !== 'keys') return {};
  const type = written['head_type'];
  return {
    ...(type === undefined ? {} : { '[LaneDigest]': inboxLaneDigest(consumer, type) }),
    ...(key === undefined || source === undefined
      ? {}
      : { '[KeyDigest]': inboxKeyDigest(consumer, source, key) }),
  };
}
