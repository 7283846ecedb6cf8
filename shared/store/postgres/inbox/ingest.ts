import { MessageRefused } from '../../../message/errors.ts';
import { newId } from '../../../message/id.ts';
import { characters, storable } from '../../../message/text.ts';
import { clean, cleanHeaders, refuseUnstorable } from '../../inbox/texts.ts';
import type { IngestResult, NewInboxRow } from '../../inbox-store.ts';
import { triedAgain } from '../../tried-again.ts';
import { sqlState } from '../connection-errors.ts';
import type { Names } from '../names.ts';
import { compare, ingest } from '../sql/inbox-ingest.ts';
import type { InboxDatabase } from './database.ts';

/** Two ingests of the same new messages in another order may wait for each other; the one that is ended starts again. */
const deadlock = (error: unknown): boolean => sqlState(error) === '40P01';

/** Stores a batch. Throws `MessageRefused` before it writes anything where a row can't be stored as it is. */
export async function ingestRows(
  database: InboxDatabase,
  names: Names,
  rows: readonly NewInboxRow[],
): Promise<readonly IngestResult[]> {
  if (rows.length === 0) return [];
  const input = rows.map(toJson);
  const answered = await triedAgain(() => database.query(ingest(names), [JSON.stringify(input)]), deadlock);
  const results = answered.rows.map((row) => ({
    added: row['added'] === true,
    differs: row['differs'] === true,
  }));
  const raced = input.filter((row) => answered.rows[row.n]?.['raced'] === true);
  if (raced.length > 0) {
    for (const n of await settleRaces(database, names, raced)) results[n] = { added: false, differs: true };
  }
  return results;
}

/**
 * Another ingest stored the same message at the same moment. Its payload can be compared only now.
 * @returns places whose payload is another one
 */
async function settleRaces(
  database: InboxDatabase,
  names: Names,
  raced: readonly JsonRow[],
): Promise<readonly number[]> {
  const { rows } = await database.query(compare(names), [JSON.stringify(raced)]);
  return rows.filter((row) => row['differs'] === true).map((row) => Number(row['n']));
}

type JsonRow = ReturnType<typeof toJson>;

/** A row by the column names of the statement. What identifies it must be exact; elsewhere what can't be stored is replaced. */
function toJson(row: NewInboxRow, n: number) {
  return {
    n,
    id: newId(),
    consumer: exact('consumer', row.consumer, 200),
    source: exact('source', row.source, 200),
    external_message_id: exact('externalMessageId', row.externalMessageId, 300),
    message_type: exact('messageType', row.messageType, 200),
    payload: clean(row.payload),
    headers: row.headers === null ? null : cleanHeaders(row.headers),
    correlation_id: row.correlationId === null ? null : storable(row.correlationId, 200),
    partition_key: row.partitionKey === null ? null : exact('partitionKey', row.partitionKey, 200),
    max_retries: row.maxRetries,
    failed_reason: row.failedReason === null ? null : storable(row.failedReason),
  };
}

function exact(field: string, text: string, limit: number): string {
  const length = characters(text);
  if (length > limit) throw new MessageRefused(field, `at most ${limit} characters`, `${length} characters`);
  refuseUnstorable(field, text);
  return text;
}
