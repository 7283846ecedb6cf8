import type { Backoff } from '../delivery/backoff.ts';
import { breakerBackoff, retryBackoff } from '../delivery/backoff.ts';
import { defaults } from '../delivery/defaults.ts';
import type { AfterSuccess, OnFailedKey } from '../store/outbox-store.ts';
import { type DatabaseSettings, readDatabase } from './config-database.ts';
import { type DestinationSettings, readDestinations } from './config-destinations.ts';
import { type Environment, EnvironmentReader } from './environment.ts';

/** Everything that Relaybox's functions take from their environment, checked and typed. */
export interface Settings {
  readonly database: DatabaseSettings;
  readonly tables: TableSettings;
  /** Who we are on the wire. */
  readonly source: string | undefined;
  /** Logical destination names. Empty where this function publishes nothing. */
  readonly destinations: Readonly<Record<string, DestinationSettings>>;
  /** Endpoints other than AWS's own, given to the clients explicitly: an emulator's queue URLs name hosts that don't resolve. */
  readonly endpoints: { readonly sqs: string | undefined; readonly eventBridge: string | undefined };
  /** The relay's wake queue. */
  readonly wakeQueueUrl: string | undefined;
  /** The handlers' wake queues, by message type. */
  readonly inboxWakeQueueUrls: Readonly<Record<string, string>>;
  /** Whose copies this function handles or stores; the empty text is the default consumer. */
  readonly consumer: string;
  /** The source that identifies what this inbox receives. */
  readonly inboxSource: string | undefined;
  readonly relay: RelaySettings;
  /** A handler's lease on a message: what is left of the invocation and the margin, or the minimum where that is longer. */
  readonly messageLease: { readonly minimumSeconds: number; readonly marginSeconds: number };
  /** `receiptsDays`: of what direct consumers have handled. */
  readonly retention: {
    readonly outboxDays: number;
    readonly inboxDays: number;
    readonly receiptsDays: number;
  };
}

/** Where the tables are; what is not set has the engine's default. */
export interface TableSettings {
  readonly schema?: string;
  readonly outboxTable?: string;
  readonly inboxTable?: string;
}

/** How the relay works. Durations in seconds. */
export interface RelaySettings {
  /** `scheduled`: drains and ends; `continuous`: polls until the invocation's end. */
  readonly mode: 'scheduled' | 'continuous';
  readonly pollSeconds: number;
  readonly batchSize: number;
  readonly parallelism: number;
  /** Lease of a bucket; each settle extends it. */
  readonly leaseSeconds: number;
  readonly afterSuccess: AfterSuccess;
  readonly onFailedKey: OnFailedKey;
  readonly retry: Backoff;
  readonly breaker: Backoff;
}

const DAYS = 36_500;

/** Reads the environment once. Throws one `ConfigurationError` that names every variable at fault. */
export function readSettings(env: Environment = process.env): Settings {
  const reader = new EnvironmentReader(env);
  const database = readDatabase(reader);
  const settings = {
    tables: readTables(reader),
    source: reader.text('RELAYBOX_SOURCE'),
    destinations: readDestinations(reader),
    endpoints: {
      sqs: reader.text('AWS_ENDPOINT_URL_SQS'),
      eventBridge: reader.text('AWS_ENDPOINT_URL_EVENTBRIDGE'),
    },
    wakeQueueUrl: reader.text('RELAYBOX_WAKE_QUEUE_URL'),
    inboxWakeQueueUrls: readWakeQueues(reader),
    consumer: reader.text('RELAYBOX_CONSUMER') ?? '',
    inboxSource: reader.text('RELAYBOX_INBOX_SOURCE'),
    relay: readRelay(reader),
    messageLease: {
      minimumSeconds:
        reader.integer('RELAYBOX_MESSAGE_LEASE_SECONDS', 1, 43_200) ?? defaults.messageLeaseSeconds,
      marginSeconds: reader.integer('RELAYBOX_LEASE_MARGIN_SECONDS', 1, 900) ?? defaults.leaseMarginSeconds,
    },
    retention: {
      outboxDays: reader.integer('RELAYBOX_OUTBOX_RETENTION_DAYS', 0, DAYS) ?? defaults.outboxRetentionDays,
      inboxDays: reader.integer('RELAYBOX_INBOX_RETENTION_DAYS', 0, DAYS) ?? defaults.inboxRetentionDays,
      receiptsDays: reader.integer('RELAYBOX_RECEIPT_RETENTION_DAYS', 0, DAYS) ?? defaults.inboxRetentionDays,
    },
  };
  reader.finish();
  // Without a database the reader has a problem, so that `finish` has thrown.
  return { ...settings, database: database as DatabaseSettings };
}

function readTables(reader: EnvironmentReader): TableSettings {
  const schema = reader.text('RELAYBOX_SCHEMA');
  const outboxTable = reader.text('RELAYBOX_OUTBOX_TABLE');
  const inboxTable = reader.text('RELAYBOX_INBOX_TABLE');
  return {
    ...(schema !== undefined && { schema }),
    ...(outboxTable !== undefined && { outboxTable }),
    ...(inboxTable !== undefined && { inboxTable }),
  };
}

function readRelay(reader: EnvironmentReader): RelaySettings {
  return {
    mode: reader.choice('RELAYBOX_MODE', ['scheduled', 'continuous']) ?? 'scheduled',
    pollSeconds: reader.integer('RELAYBOX_POLL_SECONDS', 1, 900) ?? defaults.pollSeconds,
    batchSize: reader.integer('RELAYBOX_BATCH_SIZE', 1, 10_000) ?? defaults.batchSize,
    parallelism: reader.integer('RELAYBOX_PARALLELISM', 1, 100) ?? defaults.parallelism,
    leaseSeconds: reader.integer('RELAYBOX_LEASE_SECONDS', 1, 43_200) ?? defaults.bucketLeaseSeconds,
    afterSuccess: reader.choice('RELAYBOX_AFTER_SUCCESS', ['keep', 'delete', 'archive']) ?? 'keep',
    onFailedKey: reader.choice('RELAYBOX_ON_FAILED_KEY', ['block', 'skip']) ?? 'block',
    retry: readBackoff(reader, 'RELAYBOX_RETRY', retryBackoff),
    breaker: readBackoff(reader, 'RELAYBOX_BREAKER', breakerBackoff),
  };
}

function readBackoff(reader: EnvironmentReader, name: string, otherwise: Backoff): Backoff {
  const fields = reader.object(name);
  if (fields === undefined) return otherwise;
  reader.only(fields, ['firstSeconds', 'factor', 'maxSeconds']);
  const backoff = {
    firstSeconds: reader.numberField(fields, 'firstSeconds', 0, 86_400) ?? otherwise.firstSeconds,
    factor: reader.numberField(fields, 'factor', 1, 100) ?? otherwise.factor,
    maxSeconds: reader.numberField(fields, 'maxSeconds', 0, 604_800) ?? otherwise.maxSeconds,
  };
  if (backoff.maxSeconds < backoff.firstSeconds) {
    reader.problem(`${name}.maxSeconds`, `at least firstSeconds, which is ${backoff.firstSeconds}`);
  }
  return backoff;
}

function readWakeQueues(reader: EnvironmentReader): Record<string, string> {
  const fields = reader.object('RELAYBOX_INBOX_WAKE_QUEUE_URLS');
  if (fields === undefined) return {};
  const urls = Object.keys(fields.values).map((type) => [type, reader.textField(fields, type)] as const);
  return Object.fromEntries(urls.flatMap(([type, url]) => (url === undefined ? [] : [[type, url]])));
}
