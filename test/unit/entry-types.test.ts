import { expect, test } from 'vitest';
import * as postgres from '../../shared/lambda/postgres/index.ts';
import * as sqlserver from '../../shared/lambda/sqlserver/index.ts';

interface Order {
  readonly orderId: string;
}

// What counts here is that it compiles: with nothing but the names that the entries export.
const placed: postgres.MessageHandler<Order> = async (message, { tx }) => {
  await tx.query('INSERT INTO invoices VALUES ($1)', [message.payload.orderId]);
};
const placedThere: sqlserver.MessageHandler<Order> = async (message, { tx }) => {
  await tx.query('INSERT INTO invoices VALUES (@p1)', [message.payload.orderId]);
};

function mapped(record: postgres.SqsRecord): postgres.MappedMessage {
  return { id: record.messageId, messageType: 'order.placed', payload: record.body };
}
const mapping: postgres.Mapping = mapped;
const mappingThere: sqlserver.Mapping = (record: sqlserver.SqsRecord): sqlserver.MappedMessage =>
  mapped(record);

test('a handler and a mapping in files of their own are typed by what the entry exports', () => {
  const options = { messageType: 'order.placed' };
  for (const made of [
    postgres.inboxHandler<Order>(options, placed),
    sqlserver.inboxHandler<Order>(options, placedThere),
    postgres.createIngest({ mapping }),
    sqlserver.createIngest({ mapping: mappingThere }),
  ]) {
    expect(made).toBeTypeOf('function');
  }
});
