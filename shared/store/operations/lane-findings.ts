import { isUnhandled, laneLabel, silentHandlerSeconds } from '../../operations/maintain.ts';
import type { Count, Finding, LaneStatus } from '../../operations/responses.ts';
import type { Row } from './rows.ts';

/** A lane whose oldest due message is older than this does not flow. */
const lateSeconds = 300;

/** What is wrong with relays, by the age of their last cycles (`worker`, `age`). */
export function ofRelays(workers: readonly Row[]): readonly Omit<Finding, 'check'>[] {
  if (workers.length === 0) {
    return [
      {
        severity: 'warning',
        what: 'no relay has ever reported a successful cycle on this database',
        todo: 'see whether the relay is deployed, and what its log says',
      },
    ];
  }
  return workers
    .filter((row) => row.number('age') > lateSeconds)
    .map((row) => ({
      severity: 'warning',
      what: `the last successful cycle of ${row.text('worker')} was ${row.number('age')} s ago`,
      todo: 'see its log and its schedule; a worker taken out of service is forgotten after 30 days',
    }));
}

/** What a lane's figures say. */
export function ofLane(status: LaneStatus): readonly Omit<Finding, 'check'>[] {
  const name = laneLabel(status.lane);
  const outbox = status.lane.box === 'outbox';
  const flag = outbox ? `--destination ${name}` : `--type ${status.lane.messageType}${consumerFlag(status)}`;
  const found: Omit<Finding, 'check'>[] = [];
  if (status.pause !== null) {
    found.push({
      severity: 'warning',
      what: `${name} is paused by ${status.pause.by ?? '?'} since ${status.pause.since}: ${status.pause.reason ?? 'no reason given'}`,
      todo: `relaybox resume ${flag}`,
    });
  }
  if (status.breaker !== null) {
    found.push({
      severity: 'problem',
      what: `${name} is unavailable since ${status.breaker.since ?? '?'}, after ${status.breaker.failures} failures: ${status.breaker.lastError ?? 'no reason noted'}`,
      todo: 'mend what the reason names (a destination that is not mapped is said so there); the relay probes it by itself and goes on',
    });
  }
  if (status.blockedKeys.count > 0) {
    found.push({
      severity: 'problem',
      what: `${amount(status.blockedKeys, 'key')} of ${name} ${one(status.blockedKeys) ? 'waits' : 'wait'} behind a Failed message, with ${amount(status.held, 'message')} held`,
      todo: `relaybox failed ${flag}, then requeue or discard each`,
    });
  }
  if (status.failed.count > 0) {
    found.push({
      severity: 'warning',
      what: `${amount(status.failed, 'message')} of ${name} ${are(status.failed)} Failed`,
      todo: `relaybox failed ${flag}, then requeue or discard each`,
    });
  }
  if (isUnhandled(status)) {
    found.push({
      severity: 'problem',
      what: `${amount(status.due, 'message')} of type ${name} ${are(status.due)} due, and no handler has asked for that type ${silence(status)}`,
      todo: 'deploy a handler for the type, or see why it is not invoked',
    });
  } else if (status.state === 'ready' && (status.oldestDueSeconds ?? 0) > lateSeconds) {
    found.push({
      severity: 'problem',
      what: `the oldest due message of ${name} is ${status.oldestDueSeconds} s old, with ${amount(status.due, 'message')} due`,
      todo: outbox
        ? "see the relay's log, its throttles and its errors"
        : "see the handler's log, its throttles and its errors",
    });
  }
  if (status.expiredLeases.count > 0) {
    found.push({
      severity: 'warning',
      what: `${amount(status.expiredLeases, 'lease')} of ${name} ran out without being given back: a worker was killed or frozen`,
      todo: 'the next worker takes them over; if it happens again, see timeouts and memory of the function',
    });
  }
  return found;
}

function amount(count: Count, noun: string): string {
  return `${count.count}${count.more ? '+' : ''} ${noun}${one(count) ? '' : 's'}`;
}

function are(count: Count): string {
  return one(count) ? 'is' : 'are';
}

function one({ count, more }: Count): boolean {
  return count === 1 && !more;
}

function silence(status: LaneStatus): string {
  return status.lastClaimSeconds === null
    ? 'ever'
    : `for ${status.lastClaimSeconds} s (more than ${silentHandlerSeconds})`;
}

function consumerFlag({ lane }: LaneStatus): string {
  return lane.box === 'inbox' && lane.consumer !== '' ? ` --consumer ${lane.consumer}` : '';
}
