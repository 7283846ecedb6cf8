import type { RequestOf } from '../../../operations/operations.ts';
import type { LaneName } from '../../../operations/requests.ts';
import type { LaneResponse } from '../../../operations/responses.ts';
import { paused, resumed } from '../../operations/paused.ts';
import { rowsOf } from '../../operations/rows.ts';
import { digestOf } from '../digest.ts';
import { retried } from '../inbox/retry.ts';
import type { Names } from '../names.ts';
import { pauseLane, resumeLane } from '../sql/operations-lanes.ts';
import type { OperationsSource } from './session.ts';

/** Stops a lane. What is on the wire or with a handler ends as it would; nothing new is taken. */
export async function pause(
  source: OperationsSource,
  names: Names,
  request: RequestOf<'pause'>,
): Promise<LaneResponse<'pause'>> {
  const { lane, by, reason, seconds } = request;
  const texts = lane.box === 'outbox' ? [] : [lane.consumer, lane.messageType];
  const values = [keyOf(lane), ...texts, by, reason, seconds];
  const [row] = rowsOf(await retried(() => source.query(pauseLane(names, lane.box), values)));
  return paused(request, row);
}

/** Lets a lane go on, where a person had paused it. An open breaker stays as it is: its probe decides. */
export async function resume(
  source: OperationsSource,
  names: Names,
  request: RequestOf<'resume'>,
): Promise<LaneResponse<'resume'>> {
  const { lane } = request;
  const [row] = rowsOf(await retried(() => source.query(resumeLane(names, lane.box), [keyOf(lane)])));
  return resumed(request, row);
}

/** The lane's key in its table: a destination as it is, a type by its digest. */
function keyOf(lane: LaneName): string | Buffer {
  return lane.box === 'outbox' ? lane.destination : digestOf(lane.consumer, lane.messageType);
}
