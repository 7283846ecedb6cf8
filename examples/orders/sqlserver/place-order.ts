import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { z } from 'zod';
import { transactional } from '../../../shared/lambda/sqlserver/index.ts'; // 'relaybox/sqlserver/lambda'
import { MessageRefused } from '../../../shared/message/errors.ts'; // 'relaybox'
import { answer, NewOrder, parseJson } from '../request.ts';

/** POST /orders: writes the order and its event in one transaction. Neither is there without the other. */
export const handler = middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>()
  .use(transactional())
  .handler(async (event, { relaybox: { tx, outbox } }) => {
    const parsed = NewOrder.safeParse(parseJson(event.body));
    if (!parsed.success) return answer(400, { message: z.prettifyError(parsed.error) });
    const { customer, item, amountCents, note } = parsed.data;
    const orderId = randomUUID();
    await tx.query('INSERT INTO Orders (Id, Customer, Item, AmountCents) VALUES (@p1, @p2, @p3, @p4)', [
      orderId,
      customer,
      item,
      amountCents,
    ]);
    try {
      await outbox.add({
        destination: 'events',
        messageType: 'order.placed',
        payload: { orderId, customer, item, amountCents, note },
      });
    } catch (error) {
      // A status of 400 or more rolls the order back, too.
      if (error instanceof MessageRefused) return answer(413, { message: error.message });
      throw error;
    }
    return answer(201, { orderId });
  });
