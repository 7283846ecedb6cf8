import type { RequestOf } from '../../../operations/operations.ts';
import type { ShowResponse } from '../../../operations/responses.ts';
import { rowsOf } from '../../operations/rows.ts';
import { shown } from '../../operations/shown.ts';
import type { Names } from '../names.ts';
import { showInbox, showOutbox } from '../sql/operations-messages.ts';
import { inTransaction, type OperationsSource, reading } from './session.ts';

/** Finds a message by its row's id in both boxes, or by its sender's identity in the inbox. */
export async function showMessage(
  source: OperationsSource,
  names: Names,
  { by, payload }: RequestOf<'show'>,
): Promise<ShowResponse> {
  const messages = await inTransaction(source, reading, async (client) => {
    const find =
      'id' in by ? [by.id, null, null, null] : [null, by.consumer, by.source, by.externalMessageId];
    const inbox = await client.query(showInbox(names), [payload, ...find]);
    const outbox = 'id' in by ? await client.query(showOutbox(names), [payload, by.id]) : undefined;
    return [
      ...(outbox === undefined ? [] : rowsOf(outbox).map((row) => shown('outbox', row))),
      ...rowsOf(inbox).map((row) => shown('inbox', row)),
    ];
  });
  return { command: 'show', messages };
}
