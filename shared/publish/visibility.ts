import type { SQSClient } from '@aws-sdk/client-sqs';
import { errorText } from '../delivery/error-text.ts';
import { inParallel } from '../delivery/parallel.ts';
import type { Logger } from '../delivery/telemetry.ts';
import type { DelayedRecord } from '../inbox/direct-record.ts';
import { lazySqsClient } from './lazy-client.ts';

/** How the queue is told. */
export interface DelayOptions {
  /** An endpoint other than AWS's own. */
  readonly endpoint: string | undefined;
  /** The time there is. What was not answered by then is left to the queue. */
  readonly limitMs: number;
  readonly logger: Logger;
}

/**
 * The longest wait. SQS hides a message for 12 hours at most, counted from its receipt, and refuses what is more instead
 * of shortening it. When that was nobody says: it may be a batching window (5 minutes) and a run (15 minutes) ago.
 */
const LONGEST_SECONDS = 12 * 3600 - 20 * 60;
/** SQS's limit of a call. */
const ENTRIES = 10;
const CALLS_AT_ONCE = 4;
const LONGEST_TIMER_MS = 2_147_483_647;

/**
 * Hides records for as long as each says, by changing their visibility timeout: Lambda deletes what is not in
 * `batchItemFailures`, and leaves what is to its visibility timeout, whoever has set that
 * (docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html; AWS's messaging library for .NET relies on it too,
 * by `VisibilityTimeoutForBatchFailures`).
 *
 * Never rejects: a record whose time can't be set comes again at the queue's own, which is logged.
 */
export async function delayRecords(records: readonly DelayedRecord[], options: DelayOptions): Promise<void> {
  const { endpoint, limitMs, logger } = options;
  // A host of one's own may set no end, for which there is no timer.
  const abort = AbortSignal.timeout(Math.min(Math.max(0, Math.floor(limitMs)), LONGEST_TIMER_MS));
  // Loading the SDK can't be aborted, so that the time is watched from outside too.
  const late = new Promise<never>((_, reject) => {
    abort.addEventListener('abort', () => reject(abort.reason), { once: true });
  });
  const warn = (count: number, reason: string | undefined): void =>
    logger.warn('records will come again at the queue’s own time, not at the one their handler chose', {
      records: count,
      reason,
    });
  try {
    const failed = await Promise.race([tell(records, endpoint, abort), late]);
    if (failed.length > 0) warn(failed.length, failed[0]);
  } catch (error) {
    warn(records.length, errorText(error));
  }
}

/** Answers why the queues could not do it, once for each record that it could not be done for. */
async function tell(
  records: readonly DelayedRecord[],
  endpoint: string | undefined,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const client = await lazySqsClient(endpoint);
  const { ChangeMessageVisibilityBatchCommand } = await import('@aws-sdk/client-sqs');
  const calls = await inParallel(callsOf(records), CALLS_AT_ONCE, async ({ arn, entries }) => {
    try {
      const command = new ChangeMessageVisibilityBatchCommand({
        QueueUrl: await queueUrl(arn, client, endpoint),
        Entries: entries.map(({ record, seconds }, index) => ({
          Id: String(index),
          ReceiptHandle: record.receiptHandle,
          VisibilityTimeout: Math.min(Math.ceil(seconds), LONGEST_SECONDS),
        })),
      });
      const { Failed: failed = [] } = await client.send(command, { abortSignal: signal });
      return failed.map(({ Code: code, Message: message }) => `${code}: ${message}`);
    } catch (error) {
      return entries.map(() => errorText(error));
    }
  });
  return calls.flat();
}

interface Call {
  readonly arn: string;
  readonly entries: readonly DelayedRecord[];
}

/** An event has one queue's records, of up to 10,000 messages; who calls a function by hand may mix them. */
function callsOf(records: readonly DelayedRecord[]): readonly Call[] {
  const byQueue = Map.groupBy(records, ({ record }) => record.eventSourceARN ?? '');
  return [...byQueue].flatMap(([arn, list]) =>
    Array.from({ length: Math.ceil(list.length / ENTRIES) }, (_, call) => ({
      arn,
      entries: list.slice(call * ENTRIES, (call + 1) * ENTRIES),
    })),
  );
}

/**
 * The URL of an ARN's queue: records name their queue by ARN alone. The SDK knows the host of each region and partition, and
 * of FIPS and dual stack. Throws `TypeError` where the ARN is no queue's.
 */
export async function queueUrl(
  arn: string,
  client: SQSClient,
  endpoint: string | undefined,
): Promise<string> {
  const [, , service, region, account, name] = arn.split(':');
  if (service !== 'sqs' || !region || !account || !name) {
    throw new TypeError(`the record’s eventSourceARN is no queue's: ${arn === '' ? 'there is none' : arn}`);
  }
  const { endpointProvider, useFipsEndpoint, useDualstackEndpoint } = client.config;
  const { url } = endpointProvider({
    Region: region,
    UseFIPS: await useFipsEndpoint(),
    UseDualStack: await useDualstackEndpoint(),
    ...(endpoint !== undefined && { Endpoint: endpoint }),
  });
  return `${url.href.replace(/\/$/, '')}/${account}/${name}`;
}
