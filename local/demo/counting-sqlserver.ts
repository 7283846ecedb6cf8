import { connect } from '../../shared/store/sqlserver/connections.ts';
import type { Counting } from './counting.ts';

const unfinishedSql = `
  SELECT (SELECT COUNT(*) FROM OutboxMessages WITH (READPAST) WHERE [State] < 2) AS [outbox],
         (SELECT COUNT(*) FROM InboxMessages WITH (READPAST) WHERE [State] < 2) AS [inbox]`;

/**
 * One consumer's effects. An order without one is accounted for by the furthest place in which its message is found;
 * `@p1` are the bodies on the consumer's queue, `@p2` those on its dead-letter queue. Only the invoices go through the inbox.
 */
const effectsSql = (table: 'Invoices' | 'Emails', throughInbox: boolean): string => `
  WITH placed AS (
    SELECT o.Id, (SELECT COUNT(*) FROM ${table} AS e WHERE e.OrderId = o.Id) AS effects,
      (SELECT MAX(m.[State]) FROM OutboxMessages AS m
       WHERE m.MessageType = N'order.placed' AND CHARINDEX(LOWER(CONVERT(NVARCHAR(36), o.Id)), LOWER(m.Payload)) > 0) AS sent,
      ${throughInbox ? '(SELECT MAX(i.[State]) FROM InboxMessages AS i WHERE CHARINDEX(LOWER(CONVERT(NVARCHAR(36), o.Id)), LOWER(i.Payload)) > 0)' : 'CONVERT(INT, NULL)'} AS kept,
      CASE WHEN EXISTS (SELECT 1 FROM OPENJSON(@p1) AS b WHERE CHARINDEX(LOWER(CONVERT(NVARCHAR(36), o.Id)), LOWER(b.[value])) > 0) THEN 1 ELSE 0 END AS queued,
      CASE WHEN EXISTS (SELECT 1 FROM OPENJSON(@p2) AS b WHERE CHARINDEX(LOWER(CONVERT(NVARCHAR(36), o.Id)), LOWER(b.[value])) > 0) THEN 1 ELSE 0 END AS dead
    FROM Orders AS o
  ), judged AS (
    SELECT effects, CASE
      WHEN effects > 0 THEN 'done'
      WHEN kept = 3 OR sent = 3 OR dead = 1 THEN 'failed'
      WHEN kept = 4 OR sent = 4 THEN 'discarded'
      WHEN kept < 2 OR sent < 2 OR queued = 1 THEN 'pending'
      ELSE 'lost' END AS fate
    FROM placed
  )
  SELECT ISNULL(SUM(CASE WHEN fate = 'done' THEN 1 ELSE 0 END), 0) AS [done],
         ISNULL(SUM(CASE WHEN fate = 'pending' THEN 1 ELSE 0 END), 0) AS [pending],
         ISNULL(SUM(CASE WHEN fate = 'failed' THEN 1 ELSE 0 END), 0) AS [failed],
         ISNULL(SUM(CASE WHEN fate = 'discarded' THEN 1 ELSE 0 END), 0) AS [discarded],
         ISNULL(SUM(CASE WHEN fate = 'lost' THEN 1 ELSE 0 END), 0) AS [lost],
         ISNULL(SUM(CASE WHEN effects > 1 THEN effects - 1 ELSE 0 END), 0) AS [doubled]
  FROM judged`;

const countsSql = `
  SELECT (SELECT COUNT(*) FROM Orders) AS [orders],
         (SELECT COUNT(*) FROM Invoices) AS [invoiceRows],
         (SELECT COUNT(*) FROM Emails) AS [emailRows],
         (SELECT COUNT(*) FROM OutboxMessages WHERE [State] = 2) AS [published],
         (SELECT COUNT(*) FROM InboxMessages) + (SELECT COUNT(*) FROM InboxReceipts) AS [takenIn],
         (SELECT COUNT(*) FROM InboxMessages WHERE [State] = 3) + (SELECT COUNT(*) FROM OutboxMessages WHERE [State] = 3) AS [failed]`;

const failuresSql = `
  SELECT TOP (20) o.Item AS [item], i.RetryCount AS [attempts], ISNULL(i.LastError, N'') AS [reason]
  FROM InboxMessages AS i JOIN Orders AS o ON CHARINDEX(LOWER(CONVERT(NVARCHAR(36), o.Id)), LOWER(i.Payload)) > 0
  WHERE i.[State] = 3 ORDER BY i.[Sequence]`;

/** Counts in a SQL Server database. */
export function sqlServerCounting(url: string): Counting {
  const database = connect({ url }, { max: 2 });
  // The columns are named as the interface has them, and counts come as numbers.
  const rows = async <Row>(text: string, values: unknown[] = []): Promise<readonly Row[]> =>
    (await database.query(text, values)).rows as unknown as readonly Row[];
  return {
    unfinished: () => rows(unfinishedSql),
    counts: () => rows(countsSql),
    effects: (table, alive, dead) => {
      const ours = table === 'invoices' ? 'Invoices' : 'Emails';
      return rows(effectsSql(ours, table === 'invoices'), [JSON.stringify(alive), JSON.stringify(dead)]);
    },
    failures: () => rows(failuresSql),
    end: () => database.end(),
  };
}
