import { randomUUID } from 'node:crypto';
import { type CreatedDatabase, createSqlServerDatabase as createNamed } from '../../../local/sqlserver.ts';

/** A server where databases may be created: `sqlserver://sa:password@host:1433/master?encrypt=false`. */
export const serverUrl = process.env['RELAYBOX_SQLSERVER_URL'];

/** Creates an empty database of a name of its own, with READ_COMMITTED_SNAPSHOT as asked where the server has that setting. */
export async function createSqlServerDatabase(
  server: string,
  snapshot: 'ON' | 'OFF',
): Promise<CreatedDatabase> {
  return await createNamed(server, `relaybox_${randomUUID().replaceAll('-', '')}`, snapshot);
}
