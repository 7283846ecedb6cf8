import { MessageRefused } from '../../../message/errors.ts';
import { newId } from '../../../message/id.ts';
import { storable } from '../../../message/text.ts';
import { clean, cleanHeaders, refuseUnstorable } from '../../inbox/texts.ts';
import type { IngestResult, NewInboxRow } from '../../inbox-store.ts';
import { digestHex } from '../digest.ts';
import type { Names } from '../names.ts';
import { ingest, swallowedBySeedIndex } from '../sql/inbox-ingest.ts';
import type { InboxDatabase } from './database.ts';
import { duplicateKey, retried } from './retry.ts';

/** Stores a batch. Throws `MessageRefused` before it writes anything where a row can't be stored as it is. */
export async function ingestRows(
  database: InboxDatabase,
  names: Names,
  rows: readonly NewInboxRow[],
): Promise<readonly IngestResult[]> {
  if (rows.length === 0) return [];
  const input = withFirsts(rows.map(toJson));
  try {
    const answered = await retried(() => database.query(ingest(names), [JSON.stringify(input)]));
    return answered.rows.map((row) => ({ added: row['added'] === 1, differs: row['differs'] === 1 }));
  } catch (error) {
    if (duplicateKey(error)) await refuseSwallowed(database, names, input, error);
    throw error;
  }
}

/**
 * While the seed's own unique index stands, it takes ids that differ only in case or in trailing spaces for one. Taken for
 * a duplicate such a message would be lost, so it is refused by name.
 */
async function refuseSwallowed(
  database: InboxDatabase,
  names: Names,
  input: readonly JsonRow[],
  cause: unknown,
): Promise<void> {
  const { rows } = await database.query(swallowedBySeedIndex(names), [JSON.stringify(input)]);
  const [first] = rows;
  if (first === undefined) return;
  const id = input[Number(first['n'])]?.externalMessageId ?? '';
  throw Object.assign(
    new MessageRefused(
      'externalMessageId',
      'different in more than case and trailing spaces from those that are stored, while the unique index of LowCodeHub stands ("relaybox migrate --replace-seed-identity" replaces it)',
      JSON.stringify(id),
    ),
    { cause },
  );
}

type JsonRow = ReturnType<typeof toJson>;

/** Marks the first row of each identity: the others are its duplicates, whatever is stored. */
function withFirsts(rows: readonly JsonRow[]): readonly (JsonRow & { readonly first: boolean })[] {
  const seen = new Set<string>();
  return rows.map((row) => {
    const first = !seen.has(row.identity);
    seen.add(row.identity);
    return { ...row, first };
  });
}

/** A row by the names of the statement. What identifies it must be exact; elsewhere what can't be stored is replaced. */
function toJson(row: NewInboxRow, n: number) {
  const consumer = exact('consumer', row.consumer, 200);
  const source = exact('source', row.source, 200);
  const externalMessageId = exact('externalMessageId', row.externalMessageId, 300);
  return {
    n,
    id: newId(),
    identity: digestHex(consumer, source, externalMessageId),
    consumer,
    source,
    externalMessageId,
    messageType: exact('messageType', row.messageType, 200),
    payload: clean(row.payload),
    headers: row.headers === null ? null : clean(JSON.stringify(cleanHeaders(row.headers))),
    correlationId: row.correlationId === null ? null : cut(storable(row.correlationId, 200), 200),
    partitionKey: row.partitionKey === null ? null : exact('partitionKey', row.partitionKey, 200),
    maxRetries: row.maxRetries,
    failedReason: row.failedReason === null ? null : storable(row.failedReason),
  };
}

/** `NVARCHAR(n)` counts UTF-16 code units, as JavaScript does. */
function exact(field: string, text: string, limit: number): string {
  if (text.length > limit) {
    throw new MessageRefused(field, `at most ${limit} UTF-16 code units`, `${text.length} of them`);
  }
  refuseUnstorable(field, text);
  return text;
}

/** Cuts to so many code units, never through a surrogate pair. */
function cut(text: string, limit: number): string {
  return text.length <= limit ? text : text.slice(0, limit).replace(/[\uD800-\uDBFF]$/, '');
}
