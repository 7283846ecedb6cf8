/** A handler that one message makes run out of memory, after it has written its effect. */
import { inboxHandlerFor } from '../../../shared/lambda/inbox-handler.ts';
import { engine, writeEffect } from './engine.ts';

const eaten: number[][] = [];

export const handler = inboxHandlerFor(engine)<{ n: number; killer: boolean }>(
  { messageType: 'order.placed', parallelism: 4, maxRetries: 1 },
  async ({ payload }, { tx }) => {
    await writeEffect(tx, String(payload.n));
    while (payload.killer) eaten.push(Array.from({ length: 100_000 }, Math.random));
  },
);
