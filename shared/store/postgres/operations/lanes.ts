import type { RequestOf } from '../../../operations/operations.ts';
import type { LaneName } from '../../../operations/requests.ts';
import type { LaneResponse } from '../../../operations/responses.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { pauseLane, resumeLane } from '../sql/operations-lanes.ts';
import { rowsOf } from './session.ts';

/** Stops a lane. What is on the wire or with a handler ends as it would; nothing new is taken. */
export async function pause(
  database: Database,
  names: Names,
  request: RequestOf<'pause'>,
): Promise<LaneResponse<'pause'>> {
  const { lane, by, reason, seconds } = request;
  const [row] = rowsOf(
    await database.query(pauseLane(names, lane.box), [by, reason, seconds, ...keyOf(lane)]),
  );
  const since = row?.text('since') ?? '';
  return {
    command: 'pause',
    lane,
    changed: true,
    pause: { by, reason, since, until: row?.textOrNull('until') ?? null },
  };
}

/** Lets a lane go on, where a person had paused it. An open breaker stays as it is: its probe decides. */
export async function resume(
  database: Database,
  names: Names,
  { lane }: RequestOf<'resume'>,
): Promise<LaneResponse<'resume'>> {
  const [row] = rowsOf(await database.query(resumeLane(names, lane.box), [...keyOf(lane)]));
  return { command: 'resume', lane, changed: row?.flag('ran') ?? false, pause: null };
}

function keyOf(lane: LaneName): readonly string[] {
  return lane.box === 'outbox' ? [lane.destination] : [lane.consumer, lane.messageType];
}
