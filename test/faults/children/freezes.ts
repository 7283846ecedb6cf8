/** A handler that takes a lock, says so, and waits: the test freezes its process meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inboxHandler } from '../../../shared/lambda/postgres/index.ts';

export const handler = inboxHandler<{ n: number }>(
  { messageType: 'order.placed', maxRetries: 5 },
  async ({ payload, attempt }, { tx }) => {
    await tx.query('UPDATE stock SET left_over = left_over - 1 WHERE n = $1', [payload.n]);
    await tx.query('INSERT INTO effects (n) VALUES ($1)', [payload.n]);
    if (attempt > 1) return;
    console.log('locks taken');
    await sleep(700);
  },
);
