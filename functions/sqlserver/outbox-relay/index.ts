import { relayFor } from '../../../shared/lambda/relay.ts';
import { sqlServer } from '../../../shared/lambda/sqlserver/engine.ts';

/** The outbox relay on SQL Server: started by wakes and by a schedule. */
export const handler = relayFor(sqlServer)();
