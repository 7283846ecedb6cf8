import type { RequestOf } from '../../../operations/operations.ts';
import type { LaneName } from '../../../operations/requests.ts';
import type { LaneResponse } from '../../../operations/responses.ts';
import { rowsOf } from '../../operations/rows.ts';
import { digestOf } from '../digest.ts';
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
  const values = [keyOf(lane), ...textsOf(lane), by, reason, seconds];
  const [row] = rowsOf(await source.query(pauseLane(names, lane.box), values));
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
  source: OperationsSource,
  names: Names,
  { lane }: RequestOf<'resume'>,
): Promise<LaneResponse<'resume'>> {
  const [row] = rowsOf(await source.query(resumeLane(names, lane.box), [keyOf(lane)]));
  return { command: 'resume', lane, changed: row?.flag('ran') ?? false, pause: null };
}

/** The lane's key in its table: a destination as it is, a type by its digest. */
function keyOf(lane: LaneName): string | Buffer {
  return lane.box === 'outbox' ? lane.destination : digestOf(lane.consumer, lane.messageType);
}

function textsOf(lane: LaneName): readonly string[] {
  return lane.box === 'outbox' ? [] : [lane.consumer, lane.messageType];
}
