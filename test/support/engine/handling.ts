import { Deadline } from '../../../shared/delivery/deadline.ts';
import type { BoundTransaction, MessageHandler } from '../../../shared/inbox/context.ts';
import { type HandleOptions, type HandlingReport, handleDue } from '../../../shared/inbox/handling.ts';
import type { AddResult, NewMessage } from '../../../shared/message/message.ts';
import type { InboxStore, Transaction } from '../../../shared/store/inbox-store.ts';
import type { EngineDatabase, TestTx } from './test-engine.ts';

/** The outbox as a handler gets it. */
export interface TestOutbox {
  add(message: NewMessage): Promise<AddResult>;
}

export type TestHandler<Payload = unknown> = MessageHandler<Payload, TestTx, TestOutbox>;
type Options<Payload> = Partial<HandleOptions<Payload, TestTx, TestOutbox>>;

/** What tests of handling need, over one database. */
export interface Handling {
  /** Gives a handler the transaction and an outbox bound to it, as the Lambda layer does. */
  bind(transaction: Transaction<TestTx>): BoundTransaction<TestTx, TestOutbox>;
  /** Handles what is due of `order.placed` in a store, with short margins and retries at once. */
  handlerOf(
    store: InboxStore<TestTx>,
  ): <Payload = unknown>(
    handler: TestHandler<Payload>,
    options?: Options<Payload>,
  ) => Promise<HandlingReport>;
  /** A handler that writes its message's id. */
  readonly write: TestHandler;
}

/** Makes them. */
export function handlingOn(db: EngineDatabase): Handling {
  const bind: Handling['bind'] = (transaction) => ({
    tx: transaction.tx,
    outbox: { add: (message) => db.producer.add(transaction.executor, message) },
  });
  return {
    bind,
    handlerOf:
      (store) =>
      async <Payload>(handler: TestHandler<Payload>, options: Options<Payload> = {}) =>
        await handleDue<Payload, TestTx, TestOutbox>({
          store,
          messageType: 'order.placed',
          handler,
          bind,
          retry: { firstSeconds: 0, factor: 1, maxSeconds: 0 },
          deadline: Deadline.in(20_000),
          marginMs: 50,
          ...options,
        }),
    write: (message, { tx }) => db.effects.write(tx, message.id),
  };
}

/** The same transaction with another commit. */
export function withCommit<Tx>(transaction: Transaction<Tx>, commit: () => Promise<void>): Transaction<Tx> {
  return {
    tx: transaction.tx,
    executor: transaction.executor,
    commit,
    rollback: () => transaction.rollback(),
    destroy: () => transaction.destroy(),
    endedInside: () => transaction.endedInside?.(),
  };
}
