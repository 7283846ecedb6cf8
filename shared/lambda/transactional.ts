import type { MiddlewareObj } from '@middy/core';
import type { Context } from 'aws-lambda';
import type { Logger } from '../delivery/telemetry.ts';
import { TransactionError } from '../message/errors.ts';
import { eventTraceparent } from '../publish/traceparent.ts';
import { type BoundOutbox, type UnitOutbox, type UnitOutboxOptions, unitOutbox } from './bound-outbox.ts';
import { readSettings, type Settings } from './config.ts';
import { sharedConnections } from './connections.ts';
import { onLeaving } from './early-response.ts';
import type { Engine } from './engine.ts';
import { between, callable, checkOptions, common, flag } from './options.ts';
import { type InvocationTelemetry, lambdaTelemetry } from './telemetry.ts';
import { deadlineOf, UnitOfWork } from './unit-of-work.ts';
import { relayWaker } from './wake.ts';

/** What a handler behind `transactional()` finds in its context. */
export interface TransactionalContext<Tx> {
  readonly relaybox: {
    /** The transaction, in the driver's own form. It begins at its first use. */
    readonly tx: Tx;
    readonly outbox: BoundOutbox;
  };
}

/** Options of `transactional`. */
export interface TransactionalOptions {
  /** Roll back after this response of the handler. @default responses with a `statusCode` of 400 or more */
  readonly rollbackOn?: (response: unknown) => boolean;
  /**
   * The `timeoutEarlyInMillis` given to middy, where `timeoutEarlyResponse` answers instead of throwing. Middy then
   * goes on as if the handler had returned; with less time left than this the transaction is rolled back, not committed.
   * @default 5, as in middy
   */
  readonly timeoutEarlyInMillis?: number;
  /** Connections of this process. @default 2, or as many as it may have invocations at once */
  readonly poolSize?: number;
  /** Called after a commit that added messages. @default sends to the queue in `RELAYBOX_WAKE_QUEUE_URL` */
  readonly wake?: () => Promise<void>;
  /**
   * Take a lock per partition key of the messages that are added, until the transaction ends: for writers of one key that
   * don't wait for each other by themselves. @default false
   */
  readonly serializeKeys?: boolean;
  /** Settings other than the environment's. */
  readonly settings?: Settings;
}

const rules = {
  rollbackOn: callable,
  timeoutEarlyInMillis: between(0, 900_000),
  poolSize: common.poolSize,
  wake: callable,
  serializeKeys: flag,
};

/** A middleware that gives the handler behind it `relaybox: { tx, outbox }` in its context. */
export type TransactionalMiddleware<Tx> = MiddlewareObj<
  unknown,
  unknown,
  Error,
  Context & TransactionalContext<Tx>
>;

/** Middy's timer may fire a little early, by its clock or ours. */
const TIMER_MS = 20;

interface Invocation<Tx> {
  readonly unit: UnitOfWork<Tx>;
  readonly outbox: UnitOutbox;
  readonly telemetry: InvocationTelemetry;
}

/** Binds `transactional` to an engine. All state is the request's own, since a container may run several at once. */
export function transactionalFor<Tx>(
  engine: Engine<Tx>,
): (options?: TransactionalOptions) => TransactionalMiddleware<Tx> {
  return (options = {}) => {
    checkOptions('transactional', options, rules);
    const rollbackOn = options.rollbackOn ?? isErrorResponse;
    const marginMs = (options.timeoutEarlyInMillis ?? 5) + TIMER_MS;
    const invocations = new WeakMap<object, Invocation<Tx>>();
    const open = new Set<UnitOfWork<Tx>>();
    let settings: Settings | undefined;

    return {
      name: 'relaybox/transactional',

      before(request) {
        settings ??= options.settings ?? readSettings();
        const connections = sharedConnections(engine, settings, { max: options.poolSize ?? poolSize() });
        abandonLate(open);
        const unit = new UnitOfWork(deadlineOf(request.context), (limits) => connections.begin(limits));
        const telemetry = lambdaTelemetry(request.context);
        const wake = options.wake ?? relayWake(settings, telemetry.logger);
        const producing = producingOf(request.event, options);
        const outbox = unitOutbox(unit, { telemetry, connections, wake, producing });
        open.add(unit);
        invocations.set(request, { unit, outbox, telemetry });
        onLeaving(request, () => {
          unit.abandon(
            'another middleware answered, or its onError threw, before the transaction could be committed',
          );
          open.delete(unit);
        });
        Object.assign(request.context, { relaybox: { tx: engine.lazy(unit), outbox: outbox.outbox } });
      },

      async after(request) {
        const invocation = invocations.get(request);
        if (!invocation) return;
        const { unit, outbox, telemetry } = invocation;
        try {
          if (rollbackOn(request.response)) {
            const left = await unit.rollback();
            if (left !== undefined) throw new TransactionError(left);
            return;
          }
          if (unit.deadline.remainingMs() < marginMs) throw outOfTime(unit);
          await unit.commit();
        } finally {
          open.delete(unit);
        }
        await outbox.committed();
        telemetry.flush();
      },

      async onError(request) {
        const unit = invocations.get(request)?.unit;
        if (!unit) return;
        open.delete(unit);
        // After a timeout the handler still runs, perhaps between two statements: a rollback would not stop it.
        if (request.error?.name === 'TimeoutError') unit.abandon("the invocation's time was over");
        else await unit.rollback();
      },
    };
  };
}

/** How the messages of a request are added. A caller's trace wins over the invocation's own, which is the default. */
function producingOf(
  event: unknown,
  { serializeKeys }: TransactionalOptions,
): UnitOutboxOptions<never>['producing'] {
  const traceparent = eventTraceparent(event);
  return {
    ...(serializeKeys !== undefined && { serializeKeys }),
    ...(traceparent !== undefined && { traceparent: () => traceparent }),
  };
}

/** What an earlier invocation left and nothing could see: its time is over, so nobody works in it any more. */
function abandonLate<Tx>(open: Set<UnitOfWork<Tx>>): void {
  for (const unit of open) {
    if (unit.deadline.remainingMs() > 0) continue;
    unit.abandon("its invocation's time was over");
    open.delete(unit);
  }
}

/** The waker is made before it is needed, since its client has to be loaded first. */
function relayWake(settings: Settings, logger: Logger): () => Promise<void> {
  const waker = relayWaker(settings, logger);
  return async () => waker?.wake();
}

function outOfTime<Tx>(unit: UnitOfWork<Tx>): TransactionError {
  unit.abandon("the invocation's time was over");
  return new TransactionError(
    "The transaction was rolled back: the invocation's time was over when the handler's response came, so the handler may not have finished",
  );
}

function isErrorResponse(response: unknown): boolean {
  return (
    typeof response === 'object' &&
    response !== null &&
    'statusCode' in response &&
    Number(response.statusCode) >= 400
  );
}

/** One for each invocation that may run at once, and one more for a request that comes while another is closed. */
function poolSize(): number {
  return (Number(process.env['AWS_LAMBDA_MAX_CONCURRENCY']) || 1) + 1;
}
