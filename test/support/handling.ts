import type pg from 'pg';
import { Deadline } from '../../shared/delivery/deadline.ts';
import type { BoundTransaction, MessageHandler } from '../../shared/inbox/context.ts';
import { type HandleOptions, type HandlingReport, handleDue } from '../../shared/inbox/handling.ts';
import type { AddResult, NewMessage } from '../../shared/message/message.ts';
import type { InboxStore, Transaction } from '../../shared/store/inbox-store.ts';
import { postgresOutbox } from '../../shared/store/postgres/producer.ts';

export { odd } from './odd.ts';
export { recorder } from './recorder.ts';

/** The outbox as a handler gets it. */
export interface TestOutbox {
  add(message: NewMessage): Promise<AddResult>;
}

export type TestHandler<Payload = unknown> = MessageHandler<Payload, pg.PoolClient, TestOutbox>;

/** Gives a handler the transaction and an outbox bound to it, as the Lambda layer does. */
export function bind(transaction: Transaction<pg.PoolClient>): BoundTransaction<pg.PoolClient, TestOutbox> {
  const outbox = postgresOutbox();
  return {
    tx: transaction.tx,
    outbox: { add: (message) => outbox.add(transaction.executor, message) },
  };
}

/** Handles what is due of `order.placed`, with short margins and retries at once. */
export function handlerOf(store: InboxStore<pg.PoolClient>) {
  return async <Payload = unknown>(
    handler: TestHandler<Payload>,
    options: Partial<HandleOptions<Payload, pg.PoolClient, TestOutbox>> = {},
  ): Promise<HandlingReport> =>
    await handleDue({
      store,
      messageType: 'order.placed',
      handler,
      bind,
      retry: { firstSeconds: 0, factor: 1, maxSeconds: 0 },
      deadline: Deadline.in(20_000),
      marginMs: 50,
      ...options,
    });
}
