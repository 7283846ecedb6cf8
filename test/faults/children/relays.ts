/** The relay function, with waits as short as a test is. An event may have its process killed at any statement. */
import { relayFor } from '../../../shared/lambda/relay.ts';
import { engine } from './engine.ts';
import { dieAsTold } from './statements.ts';

const relay = relayFor(engine)({
  relay: {
    batchSize: 10,
    retry: { firstSeconds: 0.2, factor: 1, maxSeconds: 0.2 },
    breaker: { firstSeconds: 0.1, factor: 1, maxSeconds: 0.1 },
  },
});

export const handler: typeof relay = async (event, context) => {
  dieAsTold(event);
  return await relay(event, context);
};
