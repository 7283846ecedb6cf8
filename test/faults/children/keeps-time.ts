/** A handler that notes at which attempt it was, and whether the database found that too early. */
import { setTimeout as sleep } from 'node:timers/promises';
import { inboxHandlerFor } from '../../../shared/lambda/inbox-handler.ts';
import { RetryAfter } from '../../../shared/message/errors.ts';
import { engine, run, writeEffect } from './engine.ts';
import { type Fate, isFirst, meet } from './points.ts';

const table = process.env['INBOX_TABLE'] ?? '';
const early = {
  postgres: `SELECT 1 FROM ${table} WHERE external_message_id = $1 AND next_attempt_at_utc > clock_timestamp()`,
  sqlserver: `SELECT 1 AS [early] FROM ${table} WHERE [ExternalMessageId] = @p1 AND [NextAttemptAtUtc] > SYSUTCDATETIME()`,
};

export const handler = inboxHandlerFor(engine)<Fate>(
  { messageType: 'order.placed', batchSize: 2, maxRetries: 1_000 },
  async ({ id, payload, attempt }, { tx, outbox }) => {
    const isEarly = (await run(tx, early, [id])).length > 0;
    await writeEffect(tx, `${payload.n}, ${isEarly ? 'early' : 'in time'}, attempt ${attempt}`);
    await outbox.add({ destination: 'after', messageType: 'order.handled', payload, delaySeconds: 60 });
    meet('written', payload);
    if (payload.at === 'throws' && isFirst(`throws-${payload.n}`)) throw new RetryAfter(2);
    await sleep(payload.takesMs ?? 0);
  },
);
