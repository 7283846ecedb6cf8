/** A handler that notes its attempt, and holds its message until its connection breaks, as often as the message says. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inboxHandlerFor } from '../../../shared/lambda/inbox-handler.ts';
import { engine, run, writeEffect } from './engine.ts';
import { type Fate, isFirst } from './points.ts';

const nothing = { postgres: 'SELECT 1', sqlserver: 'SELECT 1 AS [one]' };

export const handler = inboxHandlerFor(engine)<Fate>(
  { messageType: 'order.placed', maxRetries: 0 },
  async ({ payload, attempt }, { tx, signal }) => {
    await writeEffect(tx, `${payload.n}, attempt ${attempt}`);
    const times = Array.from({ length: payload.breaks ?? 0 }, (_, time) => `break-${time}-${payload.n}`);
    if (!times.some(isFirst)) return;
    for (;;) {
      await run(tx, nothing, []);
      await sleep(50, undefined, { signal });
    }
  },
);
