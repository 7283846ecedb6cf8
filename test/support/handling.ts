import type pg from 'pg';
import { Deadline } from '../../shared/delivery/deadline.ts';
import type { Logger, MetricName, Telemetry } from '../../shared/delivery/telemetry.ts';
import type { BoundTransaction, MessageHandler } from '../../shared/inbox/context.ts';
import { type HandleOptions, type HandlingReport, handleDue } from '../../shared/inbox/handling.ts';
import type { AddResult, NewMessage } from '../../shared/message/message.ts';
import type { InboxStore, Transaction } from '../../shared/store/inbox-store.ts';
import { postgresOutbox } from '../../shared/store/postgres/producer.ts';

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

/** Counts what was counted, and keeps what was logged. */
export function recorder(): Telemetry & {
  readonly counts: Partial<Record<MetricName, number>>;
  readonly lines: string[];
} {
  const counts: Partial<Record<MetricName, number>> = {};
  const lines: string[] = [];
  const log: Logger['info'] = (message, fields) =>
    void lines.push(`${message} ${JSON.stringify(fields ?? {})}`);
  return {
    counts,
    lines,
    logger: { debug: log, info: log, warn: log, error: log },
    count: (metric, value) => {
      counts[metric] = (counts[metric] ?? 0) + value;
    },
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

/** What a handler may throw, that refuses to be looked at. */
export const odd: readonly (readonly [string, () => unknown])[] = [
  [
    'an accessor that throws',
    () => ({
      get code() {
        throw new Error('no');
      },
    }),
  ],
  [
    'a revoked Proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    },
  ],
  [
    'an error whose cause throws',
    () =>
      Object.defineProperty(new Error('x'), 'cause', {
        get: () => {
          throw new Error('no');
        },
      }),
  ],
  [
    'one of ours by its code, whose message is no text',
    () => Object.assign(new Error('x'), { code: 'RELAYBOX_REJECTED', message: Symbol('x') }),
  ],
  ['nothing', () => undefined],
];
