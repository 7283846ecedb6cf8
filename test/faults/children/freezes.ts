/** A handler that takes a lock, says so, and waits: the test freezes its process meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inboxHandlerFor } from '../../../shared/lambda/inbox-handler.ts';
import { engine, run, writeEffect } from './engine.ts';

export const handler = inboxHandlerFor(engine)<{ n: number }>(
  { messageType: 'order.placed', maxRetries: 5 },
  async ({ payload, attempt }, { tx }) => {
    const sell = {
      postgres: 'UPDATE stock SET left_over = left_over - 1 WHERE n = $1',
      sqlserver: 'UPDATE dbo.Stock SET [LeftOver] = [LeftOver] - 1 WHERE [N] = @p1',
    };
    await run(tx, sell, [payload.n]);
    await writeEffect(tx, String(payload.n));
    if (attempt > 1) return;
    console.log('locks taken');
    await sleep(700);
  },
);
