import type { Box } from './requests.ts';
import type { OperatorResponse } from './responses.ts';

/**
 * The boxes in which a person's decision made something due: messages requeued, what stood behind one that was
 * discarded, a lane resumed. Without a wake it would wait for the next sweep.
 */
export function boxesToWake(answer: OperatorResponse): ReadonlySet<Box> {
  switch (answer.command) {
    case 'requeue':
    case 'discard':
      return new Set(answer.dryRun ? [] : answer.changed.map(({ box }) => box));
    case 'resume':
      return new Set(answer.changed ? [answer.lane.box] : []);
    default:
      return new Set();
  }
}
