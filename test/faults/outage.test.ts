import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Fault } from '../../local/faults.ts';
import { engine } from '../support/engine/engine.ts';
import { createRelayWorld, quick, type RelayWorld } from '../support/engine/relay-world.ts';
import type { EngineDatabase } from '../support/engine/test-engine.ts';
import { not } from '../support/engine/values.ts';
import { until } from '../support/until.ts';

/** Ways of being down: nobody listens, or somebody does whose answers might as well be one message's fault. */
const outages = [
  { how: 'refuses connections', waiting: engine.many / 2 },
  { how: 'answers 503', waiting: engine.many / 10 },
  { how: 'answers 200 and fails every entry', waiting: engine.many / 10 },
];

describe.each(outages)('a broker that $how, with $waiting waiting messages', ({ how, waiting }) => {
  let world: RelayWorld;
  beforeAll(async () => {
    world = await createRelayWorld();
  });
  afterAll(() => world.stop());

  async function goDown(): Promise<() => Promise<void>> {
    if (how !== 'refuses connections') {
      const fault: Fault = how === 'answers 503' ? { kind: 'status', status: 503 } : { kind: 'entries' };
      const lift = world.gate.inject({ fault });
      return async () => lift();
    }
    await world.gate.down();
    return () => world.gate.up();
  }

  // Scaled by 100: an outage of 3 s stands for five minutes, breaker pauses of 0.01 … 0.6 s for 1 … 60 s.
  const scaled = { ...quick, batchSize: 100, breaker: { firstSeconds: 0.01, factor: 2, maxSeconds: 0.6 } };

  it('rewrites no row, uses up no retry, and delivery resumes within the probe interval', async () => {
    const queue = await world.queue('orders');
    const comeBack = await goDown();
    for (let n = 0; n < waiting; n += 200) {
      await world.db.add(
        Array.from({ length: 200 }, (_, i) => ({
          destination: 'orders',
          messageType: 'order.placed',
          payload: { n: n + i },
          maxRetries: 3,
        })),
      );
    }
    const written = await countWrites(world.db);
    const relay = world.relay(scaled);
    const running = relay.run(40_000);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    // A busy machine has probed less often by then.
    await until(
      () => world.db.rows('lanes'),
      ([lane]) => Number(lane?.failures) > 3,
    );
    expect(await written()).toBe(0);

    await comeBack();
    const back = Date.now();
    await until(
      () => world.sqs.depth(queue),
      (depth) => depth.ready > 1,
    );
    // The pause of 0.6 s and the poll, on a machine that may be busy with much else.
    expect(Date.now() - back).toBeLessThan(10_000);
    await until(
      () => world.states(),
      (states) => states[2] === waiting,
      30_000,
    );
    relay.abort();
    await running;
    expect(await world.states()).toEqual({ 2: waiting });
    expect(await written()).toBeGreaterThanOrEqual(waiting);
    expect(await world.db.count('outbox', { retry_count: not(0) })).toBe(0);
    expect((await world.sqs.depth(queue)).ready).toBe(waiting);
  }, 60_000);
});

/** Has the database itself count what is written to messages from now on, an update that changes nothing too. */
async function countWrites(db: EngineDatabase): Promise<() => Promise<number>> {
  await db.sql({
    postgres: `
      CREATE TABLE writes (id uuid);
      CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO writes VALUES (OLD.id); RETURN NULL; END';
      CREATE TRIGGER note_write AFTER UPDATE OR DELETE ON ${db.tables.outbox} FOR EACH ROW EXECUTE FUNCTION note_write()`,
    sqlserver: 'CREATE TABLE dbo.Writes ([Id] UNIQUEIDENTIFIER)',
  });
  await db.sql({
    postgres: 'SELECT',
    // A trigger is a batch by itself here.
    sqlserver: `CREATE TRIGGER dbo.NoteWrite ON ${db.tables.outbox} AFTER UPDATE, DELETE AS
      BEGIN SET NOCOUNT ON; INSERT INTO dbo.Writes ([Id]) SELECT d.[Id] FROM deleted AS d; END`,
  });
  return async () => {
    const [row] = await db.sql({
      postgres: 'SELECT count(*) AS count FROM writes',
      sqlserver: 'SELECT COUNT(*) AS [count] FROM dbo.Writes',
    });
    return Number(row?.['count']);
  };
}
