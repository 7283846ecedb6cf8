import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { engine } from '../support/engine/engine.ts';
import { handlingOn } from '../support/engine/handling.ts';
import { operatingOn } from '../support/engine/operations.ts';
import { claimRequest, inboxRow } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear());

const { handlerOf, write } = handlingOn(db);
const { ask } = operatingOn(db);
const handle = handlerOf(db.inbox);

/** Another function claims what there is, and is killed. */
async function killed(): Promise<void> {
  expect((await db.inbox.claim(claimRequest())).messages).not.toEqual([]);
  await db.expireInboxLeases();
}

describe('a handler that leaves lost leases to a person', () => {
  const onLeaseLost = 'fail';

  test('isn’t run for a message whose function was killed: it ends in Failed, and says why', async () => {
    await db.inbox.ingest([inboxRow({ externalMessageId: 'a' })]);
    await killed();
    await db.inbox.ingest([inboxRow({ externalMessageId: 'b' })]);
    expect(await handle(write, { onLeaseLost })).toMatchObject({ handled: 1, failed: 1 });
    expect(await db.effects.all()).toEqual(['b']);
    const [row] = await db.rows('inbox', { external_message_id: 'a' });
    expect(row).toMatchObject({ state: 3, last_error: expect.stringMatching(/onLeaseLost.*lease ran out/) });
  });

  test('is run again once the person has requeued it', async () => {
    await db.inbox.ingest([inboxRow({ externalMessageId: 'a' })]);
    await killed();
    await handle(write, { onLeaseLost });
    const [row] = await db.rows('inbox');
    await ask({ command: 'requeue', ids: [row?.id], dryRun: false });
    expect(await handle(write, { onLeaseLost })).toMatchObject({ handled: 1, failed: 0 });
    expect(await db.effects.all()).toEqual(['a']);
  });

  test('leaves the key of such a message behind it, as onFailedKey says', async () => {
    const keyed = (externalMessageId: string) => inboxRow({ externalMessageId, partitionKey: 'k' });
    await db.inbox.ingest([keyed('a'), keyed('b')]);
    await killed();
    expect(await handle(write, { onLeaseLost, onFailedKey: 'block' })).toMatchObject({ failed: 1 });
    expect(await db.effects.all()).toEqual([]);
    await db.clear();
    await db.inbox.ingest([keyed('a'), keyed('b')]);
    await killed();
    expect(await handle(write, { onLeaseLost, onFailedKey: 'skip' })).toMatchObject({ failed: 1 });
    expect(await db.effects.all()).toEqual(['b']);
  });

  test('isn’t run again either where it was cut off because its time was up', async () => {
    await db.inbox.ingest([inboxRow()]);
    const slow = async () => await sleep(1_000);
    const report = await handle(slow, { onLeaseLost, deadline: Deadline.in(400) });
    expect(report).toMatchObject({ claimed: 1, retried: 0, released: 0, failed: 1 });
    expect(await db.rows('inbox')).toMatchObject([
      {
        state: 3,
        last_error: expect.stringMatching(/onLeaseLost.*(did not end within|time of its invocation)/),
      },
    ]);
  });

  test('has no more in hand than run at once, since what is in hand counts as begun', async () => {
    await db.inbox.ingest([inboxRow(), inboxRow(), inboxRow()]);
    let most = 0;
    const looking = async () => {
      most = Math.max(most, await db.count('inbox', { state: 1 }));
    };
    expect(await handle(looking, { onLeaseLost, parallelism: 1 })).toMatchObject({ handled: 3 });
    expect(most).toBe(1);
  });

  test('is told of an error like any other: that is tried again', async () => {
    await db.inbox.ingest([inboxRow()]);
    const failsFirst = async ({ attempt }: { readonly attempt: number }) => {
      if (attempt === 1) throw new Error('no');
    };
    expect(await handle(failsFirst, { onLeaseLost })).toMatchObject({ retried: 1, handled: 1 });
  });
});

test('by default a message that lost its lease is tried once more, even with no retries left', async () => {
  await db.inbox.ingest([inboxRow({ externalMessageId: 'a', maxRetries: 0 })]);
  await killed();
  expect(await handle(write)).toMatchObject({ handled: 1, failed: 0 });
  expect(await db.effects.all()).toEqual(['a']);
});
