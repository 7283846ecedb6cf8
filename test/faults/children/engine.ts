import type { Engine } from '../../../shared/lambda/engine.ts';
import type { Sql, TestTx } from '../../support/engine/test-engine.ts';

/** A process of its own knows nothing of the run that it belongs to: its engine is the one of its database's URL. */
const url = process.env['RELAYBOX_DATABASE_URL'] ?? '';
const name = url.startsWith('sqlserver:') ? 'sqlserver' : 'postgres';

async function load(): Promise<Engine<TestTx>> {
  if (name === 'sqlserver') return (await import('../../../shared/lambda/sqlserver/engine.ts')).sqlServer;
  return (await import('../../../shared/lambda/postgres/engine.ts')).postgres;
}

/** The engine as functions take it. */
export const engine = await load();

/** Runs the statement in the engine's own words; answers its rows. Rejects with the driver's error. */
export async function run(
  tx: TestTx,
  text: Sql,
  values: unknown[],
): Promise<readonly Record<string, unknown>[]> {
  return (await tx.query(text[name], values)).rows;
}

/** Writes an effect, as `db.effects` reads them. */
export async function writeEffect(tx: TestTx, id: string): Promise<void> {
  await run(
    tx,
    {
      postgres: 'INSERT INTO effects (id) VALUES ($1)',
      sqlserver: 'INSERT INTO dbo.Effects ([Id]) VALUES (@p1)',
    },
    [id],
  );
}
