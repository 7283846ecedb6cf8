import type { Names } from '../names.ts';
import { idText } from './inbox-shared.ts';
import { flag, idsOf } from './operations-shared.ts';
import { now } from './time.ts';

/** What a command needs to know of rows, by id (`@p1` JSON array). */
export function locateInbox(names: Names): string {
  return `
SELECT ${idText('i.[Id]')} AS [id], i.[State] AS [state], ${flag(`i.[State] = 1 AND i.[LockedUntilUtc] > ${now}`)} AS [running]
FROM ${idsOf('@p1')} INNER LOOP JOIN ${names.inbox} AS i WITH (FORCESEEK) ON i.[Id] = d.[id]`;
}

/**
 * Failed → Pending, retries and lost leases anew. Idempotent by the state it expects; `LastError` stays, it says what this
 * was about. The caller holds the keys of keyed rows and names their heads anew (see `inbox-keys.ts`). `@p1` ids.
 */
export function requeueInbox(names: Names): string {
  return `
UPDATE i SET [State] = 0, [Held] = 0, [RetryCount] = 0, [LostLeases] = 0, [NextAttemptAtUtc] = NULL, [LockedUntilUtc] = NULL,
  [LockToken] = NULL, [ProcessedAtUtc] = NULL
OUTPUT ${idText('inserted.[Id]')} AS [id]
FROM ${idsOf('@p1')} INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = d.[id]
WHERE i.[State] = 3`;
}

/**
 * Unfinished or Failed → Discarded, where no handler's lease runs. A handler whose lease ran out is fenced by its token,
 * which goes. `@p1` ids, `@p2` reason.
 */
export function discardInbox(names: Names): string {
  return `
UPDATE i SET [State] = 4, [Held] = 0, [NextAttemptAtUtc] = NULL, [LockedUntilUtc] = NULL, [LockToken] = NULL,
  [ProcessedAtUtc] = ${now}, [LastError] = @p2
OUTPUT ${idText('inserted.[Id]')} AS [id]
FROM ${idsOf('@p1')} INNER LOOP JOIN ${names.inbox} AS i WITH (ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON i.[Id] = d.[id]
WHERE i.[State] IN (0, 3) OR (i.[State] = 1 AND (i.[LockedUntilUtc] IS NULL OR i.[LockedUntilUtc] <= ${now}))`;
}
