import { sqsConsumer } from '../../../shared/lambda/sqlserver/index.ts'; // 'relaybox/sqlserver/lambda'
import { OrderPlaced } from '../events.ts';

/**
 * A second consumer of the same event, straight from its queue: the claim of the message and the email's row commit
 * together, so a repeated delivery is acknowledged without running. Sending the rows is another program's work.
 */
export const handler = sqsConsumer({ consumer: 'emails' }, async (message, { tx }) => {
  const { orderId, customer } = OrderPlaced.parse(message.payload);
  await tx.query('INSERT INTO Emails (OrderId, Recipient) VALUES (@p1, @p2)', [
    orderId,
    `${customer}@example.com`,
  ]);
});
