import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../shared/message/errors.ts';
import type { NewMessage, OutboxRow } from '../../shared/message/message.ts';
import { createOutbox } from '../../shared/outbox/producer.ts';
import { producerFromEnvironment } from '../../shared/publish/producer-environment.ts';

const store = { insert: async (_: object, rows: readonly OutboxRow[]) => new Set(rows.map(({ id }) => id)) };
const under = (limits?: string) =>
  createOutbox(
    store,
    producerFromEnvironment(limits === undefined ? {} : { RELAYBOX_DESTINATION_LIMITS: limits }),
  );
const message = (fields: Partial<NewMessage>): NewMessage => ({
  destination: 'orders',
  messageType: 'order.placed',
  payload: {},
  ...fields,
});
const text = (bytes: number) => message({ payload: 'x'.repeat(bytes) });

describe('RELAYBOX_DESTINATION_LIMITS, which grantProduce sets, decides what add refuses', () => {
  test('of a queue what no queue carries, and the queue’s own smaller limit', async () => {
    const outbox = under('{"orders":{"type":"sqs"},"small":{"type":"sqs","maxBytes":1000}}');
    expect(await outbox.add({}, text(1_040_000))).toMatchObject({ added: true });
    await expect(outbox.add({}, text(1_048_577))).rejects.toMatchObject({ field: 'payload' });
    await expect(outbox.add({}, { ...text(1_000), destination: 'small' })).rejects.toMatchObject({
      limit: expect.stringContaining('1000 bytes'),
    });
  });

  test('of an event bus a detail type beyond its 128 characters', async () => {
    const outbox = under('{"orders":{"type":"eventbridge"}}');
    await expect(outbox.add({}, message({ messageType: 't'.repeat(129) }))).rejects.toMatchObject({
      field: 'messageType',
    });
    expect(await outbox.add({}, message({ messageType: 't'.repeat(128) }))).toMatchObject({ added: true });
  });

  test('without it, and of a destination that it does not name, the strictest common limits hold', async () => {
    for (const outbox of [under(), under('{}'), under('{"other":{"type":"sqs"}}')]) {
      await expect(outbox.add({}, text(1_040_000))).rejects.toMatchObject({ field: 'payload' });
    }
  });

  test.each([
    ['no JSON', 'no JSON'],
    ['a number', '7'],
    ['a destination that is a text', '{"orders":"sqs"}'],
    ['an unknown transport', '{"orders":{"type":"kafka"}}'],
    ['a limit of nothing', '{"orders":{"type":"sqs","maxBytes":0}}'],
  ])('%s is refused, and the variable is named', (_, limits) => {
    expect(() => under(limits)).toThrow(ConfigurationError);
    expect(() => under(limits)).toThrow(/RELAYBOX_DESTINATION_LIMITS/);
  });
});
