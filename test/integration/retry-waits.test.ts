import { afterAll, beforeAll, expect, test } from 'vitest';
import type { OutgoingMessage } from '../../shared/message/message.ts';
import type { Publisher } from '../../shared/publish/publisher.ts';
import { createRelayWorld, type RelayWorld } from '../support/engine/relay-world.ts';

let world: RelayWorld;
beforeAll(async () => {
  world = await createRelayWorld();
});
afterAll(() => world.stop());

/** A broker whose answers leave open whether it has a message. */
function silentAbout(ordered: boolean): Publisher {
  const publisher: Publisher<OutgoingMessage> = {
    limits: { entries: 10, callBytes: 1_000_000, ordered },
    prepare: (entry) => ({ entry, bytes: 100 }),
    send: async () => [],
    classify: () => ({ kind: 'unavailable', reason: 'nothing is known' }),
  };
  return publisher as Publisher;
}

test.each([
  { transport: 'an ordered transport', ordered: true, least: 150, most: 200 },
  { transport: 'any other', ordered: false, least: 230, most: 300 },
])('on $transport the tenth attempt comes within $most s', async ({ ordered, least, most }) => {
  const destination = `ordered-${ordered}`;
  world.destination(destination, silentAbout(ordered));
  const [id = ''] = await world.db.add([{ destination, messageType: 'order.placed', payload: {} }]);
  await world.db.update('outbox', { retry_count: 8 }, { id });
  await world.relay().run(5_000);
  const [seconds] = await world.db.secondsLeft('outbox', 'next_attempt_at_utc', { id });
  expect(seconds).toBeGreaterThan(least);
  expect(seconds).toBeLessThanOrEqual(most);
});
