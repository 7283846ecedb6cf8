import type { StandardSchemaV1 } from '@standard-schema/spec';
import { defaults } from '../delivery/defaults.ts';
import { consumeDirect } from '../inbox/direct.ts';
import type { DirectRecord } from '../inbox/direct-record.ts';
import type { SqsBatchResponse } from '../inbox/ingest.ts';
import type { Mapping } from '../message/envelope/read.ts';
import { ConfigurationError } from '../message/errors.ts';
import { delayRecords } from '../publish/visibility.ts';
import { boundHandler, type GivenHandler } from './bound-handler.ts';
import { readSettings, type Settings } from './config.ts';
import { once, sharedConnections } from './connections.ts';
import type { Engine } from './engine.ts';
import { type InvocationContext, invocation } from './invocation.ts';
import { callable, checkOptions, common, flag, schema, text } from './options.ts';
import { relayWaker } from './wake.ts';

/** Left of an invocation to answer in, once the queue was told. */
const ANSWER_MS = 500;

/**
 * Options of a consumer that takes its messages straight from a queue. What its handler throws reports the record: SQS
 * gives it out again after the queue's visibility timeout, or after the seconds of a `RetryAfter` (11 hours 40 minutes at
 * most), on a FIFO queue with its group waiting meanwhile, and puts it into the dead-letter queue after `maxReceiveCount`.
 * `Rejected` is a failure like any other here; to end at once takes a row: `inboxHandler`.
 */
export interface SqsConsumerOptions<Payload> {
  /** Each consumer of a message handles it once. @default `RELAYBOX_CONSUMER`, or the default consumer */
  readonly consumer?: string;
  /** The source that identifies messages here. @default `RELAYBOX_INBOX_SOURCE`, or what the sender calls itself */
  readonly source?: string;
  /** Any Standard Schema. What it makes of the payload is what the handler gets. */
  readonly schema?: StandardSchemaV1<unknown, Payload>;
  /** Hand over the payload's text as it is, JSON or not. @default false */
  readonly raw?: boolean;
  /** For records in an envelope of your own. */
  readonly mapping?: Mapping;
  /** Records, or groups of a FIFO queue, at once; the pool has one connection more. @default 4 */
  readonly parallelism?: number;
  /**
   * Take a lock per partition key of the messages that are added, until the transaction ends: for writers of one key that
   * don't wait for each other by themselves. @default false
   */
  readonly serializeKeys?: boolean;
  /** Settings other than the environment's. */
  readonly settings?: Settings;
}

const rules = {
  consumer: common.consumer,
  source: text(1, 200),
  schema,
  raw: flag,
  mapping: callable,
  parallelism: common.parallelism,
  serializeKeys: flag,
};

/** A consumer function: answers the records that must come again. Its trigger has to ask for partial batch responses. */
export type SqsConsumerFunction = (event: unknown, context?: InvocationContext) => Promise<SqsBatchResponse>;

/** Binds `sqsConsumer` to an engine. Options are checked at once; nothing is read or connected before the first event. */
export function sqsConsumerFor<Tx>(
  engine: Engine<Tx>,
): <Payload = unknown, Returned = unknown>(
  options: SqsConsumerOptions<Payload>,
  handler: GivenHandler<Payload, Tx, Returned>,
) => SqsConsumerFunction {
  return (options, handler) => {
    checkOptions('sqsConsumer', options, rules);
    checkOptions('sqsConsumer', { handler }, { handler: callable }, ['handler']);
    const start = once(async () => {
      const settings = options.settings ?? readSettings();
      const max = (options.parallelism ?? defaults.parallelism) + 1;
      const connections = sharedConnections(engine, settings, { max });
      return { settings, connections, checked: once(() => connections.check('consumer')) };
    });

    return (event, context) =>
      invocation(context, async ({ deadline, signal, telemetry }) => {
        const records = recordsOf(event);
        const { settings, connections, checked } = await start();
        const relay = relayWaker(settings, telemetry.logger);
        await checked();
        const wake = async () => relay?.wake();
        const { schema, raw, mapping, parallelism, serializeKeys } = options;
        return await consumeDirect(records, {
          ...boundHandler({ engine, connections, telemetry, wake, serializeKeys, handler }),
          store: connections.inbox,
          consumer: options.consumer ?? settings.consumer,
          source: options.source ?? settings.inboxSource,
          schema,
          raw,
          mapping,
          delay: (delayed) =>
            delayRecords(delayed, {
              endpoint: settings.endpoints.sqs,
              limitMs: deadline.remainingMs() - ANSWER_MS,
              logger: telemetry.logger,
            }),
          ...(parallelism !== undefined && { parallelism }),
          deadline,
          signal,
          telemetry,
        });
      });
  };
}

function recordsOf(event: unknown): readonly DirectRecord[] {
  const records = (event as { readonly Records?: unknown } | null | undefined)?.Records;
  if (Array.isArray(records)) return records;
  throw new ConfigurationError('sqsConsumer was invoked with something other than records of an SQS queue');
}
