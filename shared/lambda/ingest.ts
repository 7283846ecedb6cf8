import { defaults } from '../delivery/defaults.ts';
import { ingest, type SqsBatchResponse } from '../inbox/ingest.ts';
import { reread } from '../inbox/reread.ts';
import type { Mapping, SqsRecord } from '../message/envelope/read.ts';
import { ConfigurationError, SchemaError } from '../message/errors.ts';
import { wakeTypes } from '../outbox/wake.ts';
import { readSettings, type Settings } from './config.ts';
import { once, sharedConnections } from './connections.ts';
import type { Engine, EngineConnections } from './engine.ts';
import { type Invocation, type InvocationContext, invocation } from './invocation.ts';
import { callable, checkOptions, common } from './options.ts';
import { inboxWakers } from './wake.ts';

/** Options of an ingest function; everything else comes from its environment. */
export interface IngestFunctionOptions {
  /** For records in an envelope of your own. */
  readonly mapping?: Mapping;
  /** Retries of the messages it stores. @default 5 */
  readonly maxRetries?: number;
  /** Settings other than the environment's. */
  readonly settings?: Settings;
}

/**
 * An ingest function: an SQS event is stored, anything else makes it read again what a person has requeued of the
 * unreadable records.
 */
export type IngestFunction = (event: unknown, context?: InvocationContext) => Promise<SqsBatchResponse>;

const WORKER = 'inbox-ingest';
/** Connections of the process: one for the batch, one for what is read again. */
const POOL = 2;
/** Beside the batches, requeued records are looked for so often. */
const REREAD_EVERY_MS = 60_000;

/** Binds the ingest function to an engine. Options are checked at once; nothing is read or connected before the first event. */
export function ingestFor<Tx>(engine: Engine<Tx>): (options?: IngestFunctionOptions) => IngestFunction {
  return (options = {}) => {
    checkOptions('createIngest', options, { mapping: callable, maxRetries: common.maxRetries });
    const start = once(async () => {
      const settings = options.settings ?? readSettings();
      const source = settings.inboxSource;
      if (source === undefined) {
        throw new ConfigurationError(
          'RELAYBOX_INBOX_SOURCE must be set: it identifies what this inbox receives',
        );
      }
      const connections = sharedConnections(engine, settings, { max: POOL });
      const checked = once(() => connections.check('ingest'));
      return { settings, source, connections, checked, reread: { at: 0 }, options };
    });

    return (event, context) =>
      invocation(context, async (current) => await run(recordsOf(event), { ...(await start()), ...current }));
  };
}

interface Run extends Invocation {
  readonly settings: Settings;
  readonly source: string;
  readonly connections: EngineConnections<unknown>;
  readonly checked: () => Promise<void>;
  /** When requeued records were last looked for, by the wall clock. */
  readonly reread: { at: number };
  readonly options: IngestFunctionOptions;
}

async function run(records: readonly SqsRecord[] | undefined, using: Run): Promise<SqsBatchResponse> {
  const { settings, source, connections, options, telemetry } = using;
  try {
    await using.checked();
  } catch (error) {
    if (error instanceof SchemaError || !records) throw error;
    telemetry.logger.error('The database could not be reached; the batch will come again', {
      error: String(error),
    });
    return { batchItemFailures: records.map(({ messageId }) => ({ itemIdentifier: messageId })) };
  }
  const wakers = inboxWakers(settings, telemetry.logger);
  const response = await ingest(records ?? [], {
    store: connections.inbox,
    consumer: settings.consumer,
    source,
    mapping: options.mapping,
    maxRetries: options.maxRetries,
    wake: (types) => wakeTypes(wakers, types),
    telemetry,
  });
  if (!records) await rereadRequeued(using);
  else if (response.batchItemFailures.length === 0 && Date.now() - using.reread.at > REREAD_EVERY_MS) {
    await rereadRequeued(using).catch((error: unknown) => {
      telemetry.logger.warn('Requeued records could not be read again now', { error: String(error) });
    });
  }
  return response;
}

async function rereadRequeued(using: Run) {
  const { settings, source, connections, options, deadline, telemetry, reread: last } = using;
  last.at = Date.now();
  const types = await reread({
    store: connections.inbox,
    consumer: settings.consumer,
    source,
    mapping: options.mapping,
    maxRetries: options.maxRetries,
    leaseMs: Math.max(0, deadline.remainingMs()) + defaults.leaseMarginSeconds * 1000,
    telemetry,
  });
  await wakeTypes(inboxWakers(settings, telemetry.logger), types);
  await connections.recordCycle(WORKER);
}

/** The records of an SQS event; undefined for any other event. */
function recordsOf(event: unknown): readonly SqsRecord[] | undefined {
  const records = (event as { readonly Records?: unknown } | null | undefined)?.Records;
  return Array.isArray(records) ? records : undefined;
}
