import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Functions, functionsOf } from '../../faults/functions.ts';
import { createRelayWorld, type RelayWorld } from '../../support/engine/relay-world.ts';
import { inboxRow } from '../../support/inbox-rows.ts';
import { until } from '../../support/until.ts';

let world: RelayWorld;
let functions: Functions;
beforeEach(async () => {
  world = await createRelayWorld();
  functions = functionsOf(world);
});
afterEach(async () => {
  await functions.stop();
  await world.stop();
});

/** The server that functions reach is another one from now on: a standby, which takes no writes, or the writer again. */
async function become(server: 'standby' | 'writer'): Promise<void> {
  const name = new URL(world.db.url).pathname.slice(1);
  const setting = `default_transaction_read_only = ${server === 'standby' ? 'on' : 'off'}`;
  await world.db.sql({ postgres: `ALTER DATABASE ${name} SET ${setting}`, sqlserver: '' });
  await world.db.endSessions();
}

it('the messages in hand use up no attempt where the old writer still answers as a standby: they are given back to the new one', async () => {
  const { db } = world;
  const fates = Array.from({ length: 4 }, (_, n) => ({ n, breaks: 2 }));
  await db.inbox.ingest(fates.map((fate) => inboxRow({ payload: JSON.stringify(fate) })));
  await functions.add('rides-out', { timeoutMs: 60_000 });
  functions.sweep('rides-out');
  for (const time of [1, 2]) {
    await until(
      () => functions.met().size,
      (met) => met === 4 * time,
      60_000,
    );
    await become('standby');
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await become('writer');
  }
  await until(
    () => db.count('inbox', { processed_at_utc: null }),
    (left) => left === 0,
    60_000,
  );
  expect((await db.effects.all()).sort()).toEqual(fates.map(({ n }) => `${n}, attempt 1`));
  expect(await db.count('inbox', { state: 2 })).toBe(4);
}, 120_000);
