/** A handler that one message makes run out of memory, after it has written its effect. */
import { inboxHandler } from '../../../shared/lambda/postgres/index.ts';

const eaten: number[][] = [];

export const handler = inboxHandler<{ n: number; killer: boolean }>(
  { messageType: 'order.placed', parallelism: 4, maxRetries: 1 },
  async ({ payload }, { tx }) => {
    await tx.query('INSERT INTO effects (n) VALUES ($1)', [payload.n]);
    while (payload.killer) eaten.push(Array.from({ length: 100_000 }, Math.random));
  },
);
