import type { RequestOf } from '../../../operations/operations.ts';
import type { LaneName } from '../../../operations/requests.ts';
import type { LaneResponse } from '../../../operations/responses.ts';
import { paused, resumed } from '../../operations/paused.ts';
import { rowsOf } from '../../operations/rows.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { pauseLane, resumeLane } from '../sql/operations-lanes.ts';

/** Stops a lane. What is on the wire or with a handler ends as it would; nothing new is taken. */
export async function pause(
  database: Database,
  names: Names,
  request: RequestOf<'pause'>,
): Promise<LaneResponse<'pause'>> {
  const { lane, by, reason, seconds } = request;
  const values = [by, reason, seconds, ...keyOf(lane)];
  const [row] = rowsOf(await database.query(pauseLane(names, lane.box), values));
  return paused(request, row);
}

/** Lets a lane go on, where a person had paused it. An open breaker stays as it is: its probe decides. */
export async function resume(
  database: Database,
  names: Names,
  request: RequestOf<'resume'>,
): Promise<LaneResponse<'resume'>> {
  const { lane } = request;
  const [row] = rowsOf(await database.query(resumeLane(names, lane.box), [...keyOf(lane)]));
  return resumed(request, row);
}

function keyOf(lane: LaneName): readonly string[] {
  return lane.box === 'outbox' ? [lane.destination] : [lane.consumer, lane.messageType];
}
