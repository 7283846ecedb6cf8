import {
  type HandlerContext,
  inboxHandler,
  type SqlServerTx,
} from '../../../shared/lambda/sqlserver/index.ts'; // 'relaybox/sqlserver/lambda'
import type { Message } from '../../../shared/message/message.ts'; // 'relaybox'
import { OrderPlaced } from '../events.ts';

/** Writes an invoice and says so in an event. Both commit with the message's Processed mark, or none of it does. */
export async function writeInvoice(
  { payload }: Message<OrderPlaced>,
  { tx, outbox }: HandlerContext<SqlServerTx>,
): Promise<void> {
  const { orderId, amountCents } = payload;
  await tx.query('INSERT INTO Invoices (OrderId, AmountCents) VALUES (@p1, @p2)', [orderId, amountCents]);
  await outbox.add({
    destination: 'events',
    messageType: 'invoice.created',
    payload: { orderId, amountCents },
  });
}

/** One function per message type: claims from the inbox what ingest has stored there. */
export const handler = inboxHandler({ messageType: 'order.placed', schema: OrderPlaced }, writeInvoice);
