import type { AdminEngine } from '../../../shared/lambda/admin.ts';
import type { Engine } from '../../../shared/lambda/engine.ts';
import { engine } from './engine.ts';
import type { TestTx } from './test-engine.ts';

interface Layer {
  readonly functions: Engine<TestTx>;
  readonly admin: AdminEngine;
}

async function onPostgres(): Promise<Layer> {
  const { postgres } = await import('../../../shared/lambda/postgres/engine.ts');
  const { postgresAdmin } = await import('../../../shared/lambda/postgres/admin.ts');
  return { functions: postgres, admin: postgresAdmin };
}

async function onSqlServer(): Promise<Layer> {
  const { sqlServer } = await import('../../../shared/lambda/sqlserver/engine.ts');
  const { sqlServerAdmin } = await import('../../../shared/lambda/sqlserver/admin.ts');
  return { functions: sqlServer, admin: sqlServerAdmin };
}

const layer = engine.name === 'sqlserver' ? await onSqlServer() : await onPostgres();

/** The engine as functions take it: `inboxHandlerFor(lambdaEngine)` and its like. */
export const lambdaEngine = layer.functions;
/** The engine as `maintainFor` and `migrateFor` take it. */
export const adminEngine = layer.admin;
