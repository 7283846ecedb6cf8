import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FunctionHost } from '../../local/host.ts';
import { engine } from '../support/engine/engine.ts';
import type { EngineDatabase } from '../support/engine/test-engine.ts';
import { not } from '../support/engine/values.ts';
import { inboxRow } from '../support/inbox-rows.ts';
import { until } from '../support/until.ts';

let db: EngineDatabase;
let host: FunctionHost;
let lines: string[];
beforeEach(async () => {
  db = await engine.createDatabase();
  lines = [];
  host = new FunctionHost({ onLog: (_, line) => lines.push(line) });
});
afterEach(async () => {
  await host.stop();
  await db.drop();
});

async function addFunction(
  entry: string,
  more: { timeoutMs: number; memoryMb?: number; concurrency?: number },
) {
  await host.add({
    name: 'handler',
    entry: fileURLToPath(new URL(`children/${entry}`, import.meta.url)),
    env: {
      RELAYBOX_DATABASE_URL: db.url,
      RELAYBOX_MESSAGE_LEASE_SECONDS: '2',
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
      return await db.count('inbox', { processed_at_utc: null });
    },
    (left) => left === 0,
    ms,
  );
}

describe('a handler killed by out of memory on one message of a batch of twenty', () => {
  it('nineteen succeed once each, the one ends Failed with a reason that names the lost leases', async () => {
    await db.inbox.ingest(
      Array.from({ length: 20 }, (_, n) => inboxRow({ payload: JSON.stringify({ n, killer: n === 7 }) })),
    );
    await addFunction('eats-memory.ts', { timeoutMs: 8_000, memoryMb: 64 });
    await sweepUntilAllEnded(80_000);
    const effects = (await db.effects.all()).map(Number).sort((a, b) => a - b);
    expect(effects).toEqual(Array.from({ length: 20 }, (_, n) => n).filter((n) => n !== 7));
    const columns = ['payload', 'state', 'last_error', 'retry_count'] as const;
    expect(await db.rows('inbox', { state: not(2) }, { columns })).toEqual([
      {
        payload: '{"n":7,"killer":true}',
        state: 3,
        last_error: expect.stringMatching(/lease/),
        retry_count: 2,
      },
    ]);
  }, 110_000);
});

describe('a handler frozen inside its transaction', () => {
  const locks = engine.endsIdleTransactions
    ? 'its locks are gone within the lease'
    : 'its locks stay until it goes on';
  it(`${locks}, and its late commit changes nothing`, async () => {
    await db.sql({
      postgres: 'CREATE TABLE stock (n int, left_over int); INSERT INTO stock VALUES (1, 10)',
      sqlserver:
        'CREATE TABLE dbo.Stock ([N] INT, [LeftOver] INT); INSERT INTO dbo.Stock ([N], [LeftOver]) VALUES (1, 10)',
    });
    await db.inbox.ingest([inboxRow({ payload: '{"n":1}' })]);
    const timeoutMs = 10_000;
    await addFunction('freezes.ts', { timeoutMs, concurrency: 2 });
    const began = performance.now();
    const frozen = host.invoke('handler', {}).catch((error: unknown) => error);
    await until(
      () => lines,
      (seen) => seen.some((line) => line.includes('locks taken')),
      20_000,
    );
    const [pid] = host.pids('handler');
    process.kill(pid as number, 'SIGSTOP');
    const locked = writeStock();
    try {
      // Nobody ends the process before its time is up: where the locks go, the server itself has ended the transaction.
      const left = began + timeoutMs - 500 - performance.now();
      const gone = await Promise.race([locked.then(() => true), sleep(left, false)]);
      expect(gone).toBe(engine.endsIdleTransactions);
    } finally {
      process.kill(pid as number, 'SIGCONT');
    }
    // Thawed, it goes on as if nothing had been, and finds its transaction or its lease gone.
    await locked;
    await frozen;
    await sweepUntilAllEnded(15_000);
    const [stock] = await db.sql({
      postgres: 'SELECT left_over FROM stock',
      sqlserver: 'SELECT [LeftOver] AS [left_over] FROM dbo.Stock',
    });
    expect(stock).toEqual({ left_over: 9 });
    expect(await db.effects.all()).toEqual(['1']);
    expect(await db.rows('inbox', {}, { columns: ['state'] })).toEqual([{ state: 2 }]);
  }, 70_000);
});

/** Waits for whoever has the row locked. */
async function writeStock(): Promise<void> {
  await db.sql({
    postgres: 'UPDATE stock SET left_over = left_over WHERE n = 1',
    sqlserver: 'UPDATE dbo.Stock SET [LeftOver] = [LeftOver] WHERE [N] = 1',
  });
}
