import { ingestFor } from '../../../shared/lambda/ingest.ts';
import { sqlServer } from '../../../shared/lambda/sqlserver/engine.ts';

/** Stores what arrives on the inbox's queue, once, on SQL Server. Its settings come from the environment; see `shared/lambda/config.ts`. */
export const handler = ingestFor(sqlServer)();
