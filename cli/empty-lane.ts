import type { LaneName } from '../shared/operations/requests.ts';
import type { LaneOptions } from './options.ts';
import { laneText } from './output.ts';
import type { Target } from './target.ts';

/** What a person is told of a lane in which nothing is. */
export const emptyLaneHint = 'Nothing is in this lane now. See that its name is right';

/**
 * Whether nothing of a lane is there: mostly a lane that nobody uses, by a slip in its name. Figures that can't be had
 * make no lane empty: what was asked for before stands, and must not look failed.
 */
export async function isEmptyLane(target: Target, named: LaneName): Promise<boolean> {
  const answer = await target.ask({ command: 'status' }).catch(() => undefined);
  if (answer === undefined) return false;
  const status = answer.lanes.find(({ lane }) => laneText(lane) === laneText(named));
  if (status === undefined) return !answer.more;
  const { due, waiting, held, leased, failed } = status;
  return [due, waiting, held, leased, failed].every(({ count }) => count === 0);
}

/** The lane that the options name. Without a type it is one of the outbox. */
export function laneNameOf({ destination = '', type, consumer = '' }: LaneOptions): LaneName {
  return type === undefined ? { box: 'outbox', destination } : { box: 'inbox', messageType: type, consumer };
}
