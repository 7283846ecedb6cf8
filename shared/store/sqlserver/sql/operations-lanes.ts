import type { Names } from '../names.ts';
import { digestGiven, iso } from './inbox-shared.ts';
import { flag } from './operations-shared.ts';
import { now } from './time.ts';

interface LaneTable {
  readonly table: string;
  /** The column that finds a lane's row, and `@p1` as that column has it. */
  readonly key: string;
  readonly given: string;
  /** The others that a new row needs, from `@p2` on. */
  readonly more: readonly string[];
}

function laneTable(names: Names, box: 'outbox' | 'inbox'): LaneTable {
  return box === 'outbox'
    ? { table: names.lanes, key: '[Destination]', given: '@p1', more: [] }
    : {
        table: names.inboxLanes,
        key: '[LaneDigest]',
        given: digestGiven('@p1'),
        more: ['[Consumer]', '[MessageType]'],
      };
}

/**
 * A person's pause, beside the breaker's columns and not among them, so that a success on the wire can't undo it. First
 * the lane's values, then who, why, and for how many seconds or null.
 */
export function pauseLane(names: Names, box: 'outbox' | 'inbox'): string {
  const { table, key, given, more } = laneTable(names, box);
  const columns = [key, ...more];
  const [by, reason, seconds] = [1, 2, 3].map((at) => `@p${columns.length + at}`);
  const until = `CASE WHEN ${seconds} IS NOT NULL THEN DATEADD(second, CONVERT(INT, ${seconds}), ${now}) END`;
  return `
UPDATE ${table} WITH (ROWLOCK) SET [PausedBy] = ${by}, [PausedReason] = ${reason}, [PausedUntilUtc] = ${until}, [PausedAtUtc] = ${now}
WHERE ${key} = ${given};
IF @@ROWCOUNT = 0
  INSERT INTO ${table} (${columns.join(', ')}, [PausedBy], [PausedReason], [PausedUntilUtc], [PausedAtUtc])
  SELECT ${columns.map((_, at) => `@p${at + 1}`).join(', ')}, ${by}, ${reason}, ${until}, ${now}
  WHERE NOT EXISTS (SELECT 1 FROM ${table} WITH (UPDLOCK, HOLDLOCK, ROWLOCK) WHERE ${key} = ${given});
SELECT ${iso('[PausedAtUtc]')} AS [since], ${iso('[PausedUntilUtc]')} AS [until] FROM ${table} WHERE ${key} = ${given};`;
}

/** Ends a pause; answers a row only where there was one, and whether it still ran. The lane's key is `@p1`. */
export function resumeLane(names: Names, box: 'outbox' | 'inbox'): string {
  const { table, key, given } = laneTable(names, box);
  return `
UPDATE ${table} WITH (ROWLOCK) SET [PausedBy] = NULL, [PausedReason] = NULL, [PausedUntilUtc] = NULL, [PausedAtUtc] = NULL
OUTPUT ${flag(`deleted.[PausedUntilUtc] IS NULL OR deleted.[PausedUntilUtc] > ${now}`)} AS [ran]
WHERE ${key} = ${given} AND [PausedAtUtc] IS NOT NULL`;
}
