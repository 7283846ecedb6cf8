import { defaults } from '../delivery/defaults.ts';
import type { Telemetry } from '../delivery/telemetry.ts';
import { ConfigurationError } from '../message/errors.ts';
import { readWakeHops, type Waker } from '../outbox/wake.ts';

/** Why a worker was started: by wakes, or by the schedule's sweep. */
export interface Trigger {
  /** Wakes in a row that brought no progress; 0 for a sweep. */
  readonly wakeHops: number;
  readonly sweep: boolean;
  /** Records that are no wakes: messages, from a queue that is not this function's to read. */
  readonly strangers: number;
}

/** What a run says about the next one. */
export interface WorkReport {
  /** Something was written: the chain of wakes goes somewhere. */
  readonly progress: boolean;
  /** Due work was left because the time was up. */
  readonly workLeft: boolean;
  /** Seconds until something comes due; undefined where nothing waits. */
  readonly nextDueSeconds: number | undefined;
}

/** A wait this long can't spin, whatever it waits for. */
const CALM_SECONDS = 5;

/** What Lambda's SQS trigger takes as "all is well", whether or not it asks for partial failures. */
export interface Acknowledged {
  readonly batchItemFailures: readonly never[];
}

/** Tells wakes from everything else, which is a sweep. Of several wakes the freshest counts: somebody has added something. */
export function readTrigger(event: unknown): Trigger {
  const records = (event as { readonly Records?: unknown } | null | undefined)?.Records;
  if (!Array.isArray(records) || records.length === 0) return { wakeHops: 0, sweep: true, strangers: 0 };
  const hops = records.map((record: { readonly body?: unknown }) => readWakeHops(String(record?.body)));
  const wakes = hops.filter((each) => each !== undefined);
  return {
    wakeHops: wakes.length > 0 ? Math.min(...wakes) : 0,
    sweep: false,
    strangers: hops.length - wakes.length,
  };
}

/**
 * Acknowledges wakes, once their work is done. Throws `ConfigurationError` where messages came with them: an answer would
 * have SQS delete what nobody has read, whatever the answer says where the event source doesn't ask which failed.
 */
export function acknowledge({ strangers }: Trigger, who: string): Acknowledged {
  if (strangers === 0) return { batchItemFailures: [] };
  throw new ConfigurationError(
    `${who} was invoked with ${strangers} SQS ${strangers === 1 ? 'record that is no wake' : 'records that are no wakes'}: its queue is its wake queue, and no other. ` +
      'Messages of a queue are read by ingest (an inbox), or by an sqsConsumer',
  );
}

/**
 * Wakes the next run where there is something for it to do. A chain of wakes that gets nowhere ends at its limit, and is
 * left to the sweep: a fault of ours or of the broker's must cost latency, not an endless loop of invocations.
 */
export async function wakeNext(
  waker: Waker | undefined,
  report: WorkReport,
  trigger: Trigger,
  telemetry: Telemetry,
  lane?: string,
): Promise<void> {
  const seconds = report.workLeft ? 0 : report.nextDueSeconds;
  if (waker === undefined || seconds === undefined) return;
  const wakeHops = report.progress || seconds >= CALM_SECONDS ? 0 : trigger.wakeHops + 1;
  if (wakeHops > defaults.maxWakeHops) {
    telemetry.count('WakeHopLimit', 1, lane);
    telemetry.logger.warn('A chain of wakes brought no progress and is left to the next sweep', {
      lane,
      wakeHops,
    });
    return;
  }
  if (seconds <= 0) await waker.wake(wakeHops);
  else await waker.wakeIn(seconds, wakeHops);
}
