import { ingestFor } from '../../shared/lambda/ingest.ts';
import { postgres } from '../../shared/lambda/postgres/engine.ts';

/** Stores what arrives on the inbox's queue, once. Its settings come from the environment; see `shared/lambda/config.ts`. */
export const handler = ingestFor(postgres)();
