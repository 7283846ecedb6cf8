import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRelayWorld, quick, type RelayWorld, until } from '../support/relay-world.ts';

const MESSAGES = 20_000;
const KEYS = 200;

describe("two applications' transactions and three relays at once, one in twenty sends failing", () => {
  let world: RelayWorld;
  beforeAll(async () => {
    world = await createRelayWorld();
  });
  afterAll(() => world.stop());

  it(`delivers all of ${MESSAGES} messages, each of ${KEYS} keys in order, over FIFO and standard`, async () => {
    const fifo = await world.queue('fifo', { fifo: true });
    const standard = await world.queue('standard');
    let sends = 0;
    world.gate.inject({ fault: { kind: 'status', status: 500 }, match: () => ++sends % 20 === 0 });
    const takenTooEarly = await auditLeases(world);
    const relays = [1, 2, 3].map(() => world.relay({ ...quick, batchSize: 100 }));
    const running = relays.map((relay) => relay.run(120_000));
    await Promise.all([produce(world, 0), produce(world, 1)]);
    await until(
      () => world.states(),
      (states) => states[2] === MESSAGES,
      100_000,
    );
    for (const relay of relays) relay.abort();
    await Promise.all(running);
    expect(await takenTooEarly()).toEqual([]);
    expect(await world.states()).toEqual({ 2: MESSAGES });
    const { rows: held } = await world.pool.query(
      'SELECT count(*)::int AS n FROM outbox_leases WHERE locked_until_utc > clock_timestamp()',
    );
    expect(held[0].n).toBe(0);

    for (const queue of [fifo, standard]) {
      const byKey = new Map<string, number[]>();
      for (const body of await world.sqs.bodies(queue)) {
        const { key, n } = JSON.parse(body) as { key: string; n: number };
        byKey.set(key, [...(byKey.get(key) ?? []), n]);
      }
      expect([...byKey.values()].flatMap((list) => [...new Set(list)])).toHaveLength(MESSAGES / 2);
      for (const list of byKey.values()) {
        // A repeat after a lost answer is allowed on a standard queue; a later message before an earlier one's first arrival never is.
        const first = [...new Set(list)];
        expect(first).toEqual(first.toSorted((a, b) => a - b));
      }
    }
  }, 150_000);
});

/** One application: transactions of ten messages each, a key's writers serialised by the key belonging to one application. */
async function produce(world: RelayWorld, app: number): Promise<void> {
  const perApp = MESSAGES / 2;
  const counters = new Map<string, number>();
  for (let made = 0; made < perApp; made += 50) {
    await world.add(
      Array.from({ length: 50 }, (_, i) => {
        const key = `key-${app}-${(made + i) % (KEYS / 2)}`;
        const n = (counters.get(key) ?? 0) + 1;
        counters.set(key, n);
        return {
          destination: n % 2 === 0 ? 'fifo' : 'standard',
          messageType: 'order.changed',
          payload: { key, n },
          partitionKey: key,
        };
      }),
    );
  }
}

/** Has the database itself note every taking of a bucket whose lease still ran. */
async function auditLeases(world: RelayWorld): Promise<() => Promise<unknown[]>> {
  await world.pool.query(`
    CREATE TABLE taken_too_early (destination text, bucket int, old_token uuid, new_token uuid);
    CREATE FUNCTION note_takings() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.lock_token IS DISTINCT FROM OLD.lock_token AND NEW.lock_token IS NOT NULL
         AND OLD.locked_until_utc > clock_timestamp() THEN
        INSERT INTO taken_too_early VALUES (OLD.destination, OLD.bucket, OLD.lock_token, NEW.lock_token);
      END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER note_takings BEFORE UPDATE ON outbox_leases FOR EACH ROW EXECUTE FUNCTION note_takings();
  `);
  return async () => (await world.pool.query('SELECT * FROM taken_too_early')).rows;
}
