/** The maintain function. An event may have its process killed at any statement. */
import type { AdminEngine } from '../../../shared/lambda/admin.ts';
import { maintainFor } from '../../../shared/lambda/maintain.ts';
import { engine } from './engine.ts';
import { dieAsTold } from './statements.ts';

async function load(): Promise<AdminEngine> {
  if (engine.name === 'postgres') {
    return (await import('../../../shared/lambda/postgres/admin.ts')).postgresAdmin;
  }
  return (await import('../../../shared/lambda/sqlserver/admin.ts')).sqlServerAdmin;
}

const maintain = maintainFor(await load())();

export const handler: typeof maintain = async (event, context) => {
  dieAsTold(event);
  return await maintain(event, context);
};
