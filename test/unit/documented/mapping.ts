import { createIngest } from '../../../shared/lambda/postgres/index.ts';

export const handler = createIngest({
  mapping({ body, messageAttributes }) {
    if (messageAttributes?.['legacy']?.stringValue !== 'true') return undefined;
    const order = JSON.parse(body);
    return {
      id: `order-${order.no}-${order.version}`,
      messageType: 'order.placed',
      payload: { orderId: order.no },
      partitionKey: order.no,
    };
  },
});
