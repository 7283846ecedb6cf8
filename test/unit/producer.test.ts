import { expect, test } from 'vitest';
import { messageId } from '../../shared/message/id.ts';
import type { NewMessage, OutboxRow } from '../../shared/message/message.ts';
import { createOutbox } from '../../shared/outbox/producer.ts';

function recording() {
  const written: OutboxRow[] = [];
  const outbox = createOutbox<null>({
    async insert(_, rows) {
      written.push(...rows);
      return new Set(rows.map(({ id }) => id));
    },
  });
  return { outbox, written };
}

const message = (fields: Partial<NewMessage> = {}): NewMessage => ({
  destination: 'orders',
  messageType: 'order.placed',
  payload: 1,
  ...fields,
});

test('one id for two destinations is refused before anything is written, and the message says how to make two', async () => {
  const { outbox, written } = recording();
  const id = messageId('order', 1);
  const fanOut = [message({ id }), message({ id: id.toUpperCase(), destination: 'events' })];
  await expect(outbox.add(null, fanOut)).rejects.toMatchObject({
    code: 'RELAYBOX_MESSAGE_REFUSED',
    field: 'id',
    message: expect.stringMatching(/put the destination into messageId.*both orders and events/),
  });
  expect(written).toEqual([]);
  const each = ['orders', 'events'].map((destination) =>
    message({ id: messageId('order', 1, destination), destination }),
  );
  expect((await outbox.add(null, each)).map(({ added }) => added)).toEqual([true, true]);
});

test('one id twice for one destination is one message, as ever', async () => {
  const { outbox } = recording();
  const id = messageId('order', 1);
  const results = await outbox.add(null, [message({ id }), message({ id })]);
  expect(results.map(({ added }) => added)).toEqual([true, false]);
});

test('a hole in a list is refused like any other thing that is no message', async () => {
  const { outbox, written } = recording();
  const holed: NewMessage[] = [];
  holed[1] = message();
  await expect(outbox.add(null, holed)).rejects.toMatchObject({
    code: 'RELAYBOX_MESSAGE_REFUSED',
    message: expect.stringContaining('message 1 of 2'),
  });
  expect(written).toEqual([]);
});
