/** A consumer straight from a queue. Its process dies, or stops, where a message says. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sqsConsumerFor } from '../../../shared/lambda/sqs-consumer.ts';
import { commitAsTold, fatefulEngine } from './commits.ts';
import { writeEffect } from './engine.ts';
import { type Fate, fatesOf, isFirst, meet } from './points.ts';

const consume = sqsConsumerFor(fatefulEngine)<Fate>(
  { consumer: 'consumer' },
  async ({ payload }, { tx, outbox }) => {
    await commitAsTold(tx, payload);
    await writeEffect(tx, String(payload.n));
    await outbox.add({ destination: 'after', messageType: 'order.consumed', payload: payload.n });
    meet('written', payload);
    if (payload.at === 'throws' && isFirst(`throws-${payload.n}`)) throw new Error('told to');
    await sleep(payload.takesMs ?? 0);
  },
);

export const handler: typeof consume = async (event, context) => {
  for (const fate of fatesOf(event)) meet('entry', fate);
  return await consume(event, context);
};
