import { afterAll, expect, test } from 'vitest';
import { engine } from '../support/engine/engine.ts';
import { handlingOn } from '../support/engine/handling.ts';
import { inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
const handle = handlingOn(db).handlerOf(db.inbox);

test('a handler that is given more retries brings back none of the messages that are Failed already', async () => {
  await db.inbox.ingest([inboxRow(), inboxRow({ partitionKey: 'k' })]);
  let runs = 0;
  const failing = () => {
    runs += 1;
    throw new Error('no');
  };
  expect(await handle(failing, { maxRetries: 0 })).toMatchObject({ failed: 2 });
  expect(await handle(failing, { maxRetries: 50 })).toMatchObject({ claimed: 0, failed: 0 });
  expect(runs).toBe(2);
  expect(await db.count('inbox', { state: 3 })).toBe(2);
});
