import { postgres } from '../../shared/lambda/postgres/engine.ts';
import { relayFor } from '../../shared/lambda/relay.ts';

/** The outbox relay: started by wakes and by a schedule. */
export const handler = relayFor(postgres)();
