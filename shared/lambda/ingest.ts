import { defaults } from '../delivery/defaults.ts';
import { ingest, type SqsBatchResponse } from '../inbox/ingest.ts';
import { reread } from '../inbox/reread.ts';
import type { Mapping, SqsRecord } from '../message/envelope/read.ts';
import { ConfigurationError, SchemaError } from '../message/errors.ts';
import { wakeTypes } from '../outbox/wake.ts';
import { readSettings, type Settings } from './config.ts';
import { once, sharedConnections } from './connections.ts';
import type { Engine, EngineConnections } from './engine.ts';
import { type InvocationIdentity, type InvocationTelemetry, lambdaTelemetry } from './telemetry.ts';
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

/** What of Lambda's context an ingest function needs. */
export interface IngestContext extends InvocationIdentity {
  getRemainingTimeInMillis(): number;
}

/**
 * An ingest function: an SQS event is stored, anything else makes it read again what a person has requeued of the
 * unreadable records.
 */
export type IngestFunction = (event: unknown, context: IngestContext) => Promise<SqsBatchResponse>;

/** Connections of the process: one for the batch, one for what is read again. */
const POOL = 2;
/** Requeued records are looked for so often beside the batches. */
const REREAD_EVERY_MS = 60_000;

/** Binds the ingest function to an engine. Nothing is read or connected before the first event. */
export function ingestFor<Tx>(engine: Engine<Tx>): (options?: IngestFunctionOptions) => IngestFunction {
  return (options = {}) => {
    const start = once(async () => {
      const settings = options.settings ?? readSettings();
      const source = settings.inboxSource;
      if (source === undefined) {
        throw new ConfigurationError(
          'RELAYBOX_INBOX_SOURCE must be set: it identifies what this inbox receives',
        );
      }
      const connections = sharedConnections(engine, settings, { max: POOL });
      return {
        settings,
        source,
        connections,
        checked: once(() => connections.check('ingest')),
        reread: { at: 0 },
      };
    });

    return async (event, context) => {
      const telemetry = lambdaTelemetry(context);
      try {
        const process = await start();
        return await run(recordsOf(event), { ...process, options, context, telemetry });
      } finally {
        telemetry.flush();
      }
    };
  };
}

interface Run {
  readonly settings: Settings;
  readonly source: string;
  readonly connections: EngineConnections<unknown>;
  readonly checked: () => Promise<void>;
  readonly reread: { at: number };
  readonly options: IngestFunctionOptions;
  readonly context: IngestContext;
  readonly telemetry: InvocationTelemetry;
}

async function run(records: readonly SqsRecord[] | undefined, using: Run): Promise<SqsBatchResponse> {
  const { settings, source, connections, options, telemetry } = using;
  const wakers = inboxWakers(settings, telemetry.logger);
  try {
    await using.checked();
  } catch (error) {
    if (error instanceof SchemaError || !records) throw error;
    telemetry.logger.error('The database could not be reached; the batch will come again', {
      error: String(error),
    });
    return { batchItemFailures: records.map(({ messageId }) => ({ itemIdentifier: messageId })) };
  }
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
  else if (Date.now() - using.reread.at > REREAD_EVERY_MS) {
    await rereadRequeued(using).catch((error: unknown) => {
      telemetry.logger.warn('Requeued records could not be read again now', { error: String(error) });
    });
  }
  return response;
}

async function rereadRequeued({ settings, connections, options, context, telemetry, reread: last }: Run) {
  last.at = Date.now();
  const types = await reread({
    store: connections.inbox,
    consumer: settings.consumer,
    mapping: options.mapping,
    maxRetries: options.maxRetries,
    leaseMs: context.getRemainingTimeInMillis() + defaults.leaseMarginSeconds * 1000,
    telemetry,
  });
  await wakeTypes(inboxWakers(settings, telemetry.logger), types);
}

/** The records of an SQS event; undefined for any other event. */
function recordsOf(event: unknown): readonly SqsRecord[] | undefined {
  const records = (event as { readonly Records?: unknown } | undefined)?.Records;
  return Array.isArray(records) ? records : undefined;
}
