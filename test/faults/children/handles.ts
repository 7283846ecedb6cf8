/** A handler of one message type. Its process dies, or fails, where a message says. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inboxHandlerFor } from '../../../shared/lambda/inbox-handler.ts';
import { commitAsTold, fatefulEngine } from './commits.ts';
import { writeEffect } from './engine.ts';
import { type Fate, isFirst, meet } from './points.ts';

export const handler = inboxHandlerFor(fatefulEngine)<Fate>(
  {
    messageType: process.env['MESSAGE_TYPE'] ?? '',
    // What a killed process has claimed waits for its lease.
    batchSize: 4,
    // What dies beside a message that kills, and what a busy machine is too slow for, is charged too.
    maxRetries: 1_000,
    retry: { firstSeconds: 0.1, factor: 1, maxSeconds: 0.1 },
  },
  async ({ payload }, { tx, outbox }) => {
    await commitAsTold(tx, payload);
    await writeEffect(tx, String(payload.n));
    await outbox.add({ destination: 'after', messageType: 'order.handled', payload: payload.n });
    meet('written', payload);
    if (payload.at === 'throws' && isFirst(`throws-${payload.n}`)) throw new Error('told to');
    await sleep(payload.takesMs ?? 0);
  },
);
