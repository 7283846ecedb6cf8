import type { RequestOf } from '../../../operations/operations.ts';
import type { ShowResponse } from '../../../operations/responses.ts';
import { rowsOf } from '../../operations/rows.ts';
import { shown } from '../../operations/shown.ts';
import { digestHex } from '../digest.ts';
import type { Names } from '../names.ts';
import { consumers, showInboxById, showInboxByIdentity, showOutbox } from '../sql/operations-messages.ts';
import type { OperationsSource } from './session.ts';

/** Finds a message by its row's id in both boxes, or by its sender's identity in the inbox. */
export async function showMessage(
  source: OperationsSource,
  names: Names,
  { by, payload }: RequestOf<'show'>,
): Promise<ShowResponse> {
  if ('id' in by) {
    const outbox = rowsOf(await source.query(showOutbox(names), [payload, by.id]));
    const inbox = rowsOf(await source.query(showInboxById(names), [payload, by.id]));
    return {
      command: 'show',
      messages: [...outbox.map((row) => shown('outbox', row)), ...inbox.map((row) => shown('inbox', row))],
    };
  }
  // The identity begins with the consumer: without one, those are tried that have a lane.
  const tried =
    by.consumer === null
      ? new Set(['', ...rowsOf(await source.query(consumers(names))).map((row) => row.text('consumer'))])
      : [by.consumer];
  const digests = [...tried].map((consumer) => digestHex(consumer, by.source, by.externalMessageId));
  const rows = rowsOf(
    await source.query(showInboxByIdentity(names), [
      payload,
      JSON.stringify(digests),
      by.source,
      by.externalMessageId,
    ]),
  );
  return { command: 'show', messages: rows.map((row) => shown('inbox', row)) };
}
