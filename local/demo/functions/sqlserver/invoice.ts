import { OrderPlaced } from '../../../../examples/orders/events.ts';
import { writeInvoice } from '../../../../examples/orders/sqlserver/invoice-on-order-placed.ts';
import { inboxHandler } from '../../../../shared/lambda/sqlserver/index.ts';
import { misbehave } from '../../misbehaviour.ts';

/** The example's handler, which misbehaves after its work is written and before it commits: the worst moment. */
export const handler = inboxHandler(
  {
    messageType: 'order.placed',
    schema: OrderPlaced,
    maxRetries: 2,
    retry: { firstSeconds: 0.5, factor: 2, maxSeconds: 2 },
  },
  async (message, context) => {
    await writeInvoice(message, context);
    misbehave(message.payload.item, message.attempt);
  },
);
