import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type Backoff, retryBackoff } from '../delivery/backoff.ts';
import { defaults } from '../delivery/defaults.ts';
import type { MetricName } from '../delivery/telemetry.ts';
import { type HandlingReport, handleDue, type OnLeaseLost } from '../inbox/handling.ts';
import { DatabaseUnavailable } from '../message/errors.ts';
import { type Waker, wakeTypes } from '../outbox/wake.ts';
import type { OnFailedKey } from '../store/outbox-store.ts';
import { boundHandler, type GivenHandler, type HandlerOf } from './bound-handler.ts';
import { readSettings, type Settings } from './config.ts';
import { once, sharedConnections } from './connections.ts';
import type { Engine, EngineConnections } from './engine.ts';
import { type Invocation, type InvocationContext, invocation } from './invocation.ts';
import { backoff, callable, checkOptions, common, flag, oneOf, schema } from './options.ts';
import { countZeros } from './telemetry.ts';
import { inboxWakers, relayWaker } from './wake.ts';
import { type Acknowledged, acknowledge, readTrigger, type Trigger, wakeNext } from './wake-event.ts';

/** Options of a message type's handler. */
export interface InboxHandlerOptions<Payload> {
  readonly messageType: string;
  /** Any Standard Schema, of zod, valibot or arktype for instance. What it makes of the payload is what the handler gets. */
  readonly schema?: StandardSchemaV1<unknown, Payload>;
  /** Hand over the payload's text as it is, JSON or not. @default false */
  readonly raw?: boolean;
  /** Whose copies of the messages are handled. @default `RELAYBOX_CONSUMER`, or the default consumer */
  readonly consumer?: string;
  /** Messages that one claim takes. @default 50 */
  readonly batchSize?: number;
  /** Messages at once, each in a transaction of its own; the pool has one connection more. @default 4 */
  readonly parallelism?: number;
  /**
   * Retries after the first attempt. A message that lost its lease is tried once more, alone, even where none is left:
   * another one beside it may have killed the function; see `onLeaseLost`. @default 5, as ingest writes it
   */
  readonly maxRetries?: number;
  /** How the waits between attempts grow. @default 5 s, doubled up to 5 min */
  readonly retry?: Partial<Backoff>;
  /** What happens to a key behind a message that is Failed for good. @default 'block' */
  readonly onFailedKey?: OnFailedKey;
  /**
   * What becomes of a message whose handler was killed, frozen or out of time, so that nobody knows how far it came with
   * what is outside of the database, a payment say: `retry` runs it again, `fail` ends it in Failed at once, for a person.
   * With `fail` a claim takes no more than run at once, and what ran beside it when the function was killed ends there too.
   * @default 'retry'
   */
  readonly onLeaseLost?: OnLeaseLost;
  /**
   * Take a lock per partition key of the messages that are added, until the transaction ends: for writers of one key that
   * don't wait for each other by themselves. @default false
   */
  readonly serializeKeys?: boolean;
  /** Settings other than the environment's. */
  readonly settings?: Settings;
}

/**
 * A handler function: wakes are acknowledged, any other event is a sweep and answers what was done. Rejects with
 * `ConfigurationError` where a queue's messages come instead of wakes, so that they stay there.
 */
export type InboxHandlerFunction = (
  event: unknown,
  context?: InvocationContext,
) => Promise<HandlingReport | Acknowledged>;

const rules = {
  messageType: common.messageType,
  schema,
  raw: flag,
  consumer: common.consumer,
  batchSize: common.batchSize,
  parallelism: common.parallelism,
  maxRetries: common.maxRetries,
  onFailedKey: common.onFailedKey,
  onLeaseLost: oneOf('retry', 'fail'),
  serializeKeys: flag,
};

/** What alarms watch: written as zero by every sweep. */
const WATCHED: readonly MetricName[] = ['Handled', 'Failed', 'LostLeases'];

/** Binds `inboxHandler` to an engine. Options are checked at once; nothing is read or connected before the first event. */
export function inboxHandlerFor<Tx>(
  engine: Engine<Tx>,
): <Payload = unknown, Returned = unknown>(
  options: InboxHandlerOptions<Payload>,
  handler: GivenHandler<Payload, Tx, Returned>,
) => InboxHandlerFunction {
  return (options, handler) => {
    checkOptions('inboxHandler', options, rules, ['messageType']);
    checkOptions("inboxHandler's retry", options.retry, backoff);
    checkOptions('inboxHandler', { handler }, { handler: callable }, ['handler']);
    const start = once(async () => {
      const settings = options.settings ?? readSettings();
      const max = (options.parallelism ?? defaults.parallelism) + 1;
      const connections = sharedConnections(engine, settings, { max });
      return { settings, connections, checked: once(() => connections.check('handler')) };
    });

    return (event, context) =>
      invocation(context, async (running) => {
        const trigger = readTrigger(event);
        const { settings, connections, checked } = await start();
        await checked();
        const run = new HandlerRun({ engine, settings, connections, options, handler, running });
        const report = await run.run(trigger);
        return trigger.sweep ? report : acknowledge(trigger, 'inboxHandler');
      });
  };
}

interface RunOptions<Payload, Tx> {
  readonly engine: Engine<Tx>;
  readonly settings: Settings;
  readonly connections: EngineConnections<Tx>;
  readonly options: InboxHandlerOptions<Payload>;
  readonly handler: HandlerOf<Payload, Tx>;
  readonly running: Invocation;
}

/** One invocation of a handler function. */
class HandlerRun<Payload, Tx> {
  readonly #with: RunOptions<Payload, Tx>;

  constructor(options: RunOptions<Payload, Tx>) {
    this.#with = options;
  }

  async run(trigger: Trigger): Promise<HandlingReport> {
    const { settings, options, running } = this.#with;
    const { logger } = running.telemetry;
    const wakers = inboxWakers(settings, logger);
    if (trigger.sweep) countZeros(running.telemetry, WATCHED, [options.messageType]);
    const report = await this.#handle(wakers);
    // The sweep is what looks again at a database that is away: waking at once would only ask it the same.
    if (report.unavailable !== undefined) {
      throw new DatabaseUnavailable(`Handling ended because the database went away: ${report.unavailable}`);
    }
    await this.#wakeNext(wakers.get(options.messageType), report, trigger);
    return report;
  }

  async #handle(wakers: ReadonlyMap<string, Waker>): Promise<HandlingReport> {
    const { engine, settings, connections, options, handler, running } = this.#with;
    const { deadline, signal, telemetry } = running;
    const relay = relayWaker(settings, telemetry.logger);
    const wake = async () => relay?.wake();
    const { schema, raw, batchSize, parallelism, maxRetries, onFailedKey, onLeaseLost, serializeKeys } =
      options;
    return await handleDue<Payload, Tx, Parameters<typeof handler>[1]['outbox']>({
      ...boundHandler({ engine, connections, telemetry, wake, serializeKeys, handler }),
      store: connections.inbox,
      messageType: options.messageType,
      consumer: options.consumer ?? settings.consumer,
      schema,
      raw,
      maxRetries,
      ...(batchSize !== undefined && { batchSize }),
      ...(parallelism !== undefined && { parallelism }),
      ...(onFailedKey !== undefined && { onFailedKey }),
      ...(onLeaseLost !== undefined && { onLeaseLost }),
      retry: { ...retryBackoff, ...options.retry },
      leaseMs: leaseMs(deadline.remainingMs(), settings.messageLease),
      deadline,
      signal,
      telemetry,
      wake: (types) => wakeTypes(wakers, types),
    });
  }

  async #wakeNext(waker: Waker | undefined, report: HandlingReport, trigger: Trigger): Promise<void> {
    const { settings, connections, options, running } = this.#with;
    const { messageType } = options;
    const consumer = options.consumer ?? settings.consumer;
    const progress = report.handled + report.retried + report.failed > 0;
    const { workLeft } = report;
    const nextDueSeconds = workLeft ? 0 : await connections.inbox.secondsToNextDue({ consumer, messageType });
    await wakeNext(waker, { progress, workLeft, nextDueSeconds }, trigger, running.telemetry, messageType);
  }
}

/** Until the invocation is surely over, or the minimum where that is longer: nobody renews it on Lambda. */
function leaseMs(remainingMs: number, lease: Settings['messageLease']): number {
  return Math.max(lease.minimumSeconds * 1000, remainingMs + lease.marginSeconds * 1000);
}
