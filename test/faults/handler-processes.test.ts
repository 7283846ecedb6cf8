import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FunctionHost } from '../../local/host.ts';
import { createInbox, type InboxFixture, inboxRow } from '../support/inbox.ts';
import { until } from '../support/relay-world.ts';

let inbox: InboxFixture;
let host: FunctionHost;
let lines: string[];
beforeEach(async () => {
  inbox = await createInbox();
  await inbox.pool.query('CREATE TABLE effects (n int); CREATE TABLE stock (n int, left_over int)');
  lines = [];
  host = new FunctionHost({ onLog: (_, line) => lines.push(line) });
});
afterEach(async () => {
  await host.stop();
  await inbox.drop();
});

async function addFunction(
  entry: string,
  more: { timeoutMs: number; memoryMb?: number; concurrency?: number },
) {
  await host.add({
    name: 'handler',
    entry: fileURLToPath(new URL(`children/${entry}`, import.meta.url)),
    env: {
      RELAYBOX_DATABASE_URL: inbox.url,
      RELAYBOX_MESSAGE_LEASE_SECONDS: '1',
      RELAYBOX_LEASE_MARGIN_SECONDS: '1',
    },
    ...more,
  });
}

/** Sweeps as a schedule would, whatever becomes of each, until every message has ended. */
async function sweepUntilAllEnded(ms: number): Promise<void> {
  await until(
    async () => {
      await host.invoke('handler', {}).catch(() => undefined);
      return await inbox.rows('SELECT id FROM inbox_messages WHERE processed_at_utc IS NULL');
    },
    (rows) => rows.length === 0,
    ms,
  );
}

describe('a handler killed by out of memory on one message of a batch of twenty', () => {
  it('nineteen succeed once each, the one ends Failed with a reason that names the lost leases', async () => {
    await inbox.store.ingest(
      Array.from({ length: 20 }, (_, n) => inboxRow({ payload: JSON.stringify({ n, killer: n === 7 }) })),
    );
    await addFunction('eats-memory.ts', { timeoutMs: 4_000, memoryMb: 48 });
    await sweepUntilAllEnded(60_000);
    const effects = await inbox.rows('SELECT n FROM effects ORDER BY n');
    expect(effects.map(({ n }) => n)).toEqual(Array.from({ length: 20 }, (_, n) => n).filter((n) => n !== 7));
    const failed = await inbox.rows(
      'SELECT payload, state, last_error, retry_count FROM inbox_messages WHERE state <> 2',
    );
    expect(failed).toEqual([
      {
        payload: '{"n":7,"killer":true}',
        state: 3,
        last_error: expect.stringMatching(/lease/),
        retry_count: 2,
      },
    ]);
  }, 90_000);
});

describe('a handler frozen inside its transaction', () => {
  it('its locks are gone within the lease, and its late commit changes nothing', async () => {
    await inbox.pool.query('INSERT INTO stock VALUES (1, 10)');
    await inbox.store.ingest([inboxRow({ payload: '{"n":1}' })]);
    await addFunction('freezes.ts', { timeoutMs: 6_000, concurrency: 2 });
    const frozen = host.invoke('handler', {}).catch((error: unknown) => error);
    await until(
      () => lines,
      (seen) => seen.some((line) => line.includes('locks taken')),
    );
    const [pid] = host.pids('handler');
    process.kill(pid as number, 'SIGSTOP');
    const stopped = Date.now();
    try {
      // Nobody ends the process: the server itself ends the transaction, and the lock with it.
      await inbox.pool.query('UPDATE stock SET left_over = left_over WHERE n = 1');
      expect(Date.now() - stopped).toBeLessThan(5_000);
    } finally {
      process.kill(pid as number, 'SIGCONT');
    }
    // Thawed with time left, it goes on as if nothing had been, and finds its transaction gone.
    await frozen;
    await sweepUntilAllEnded(15_000);
    expect(await inbox.rows('SELECT left_over FROM stock')).toEqual([{ left_over: 9 }]);
    expect(await inbox.rows('SELECT n FROM effects')).toEqual([{ n: 1 }]);
    expect(await inbox.rows('SELECT state FROM inbox_messages')).toEqual([{ state: 2 }]);
  }, 40_000);
});
