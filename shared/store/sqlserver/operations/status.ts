import type { StatusResponse } from '../../../operations/responses.ts';
import { rowsOf } from '../../operations/rows.ts';
import { inboxLane, outboxLane } from '../../operations/status-rows.ts';
import type { Names } from '../names.ts';
import { inboxStatus } from '../sql/operations-status-inbox.ts';
import { outboxStatus } from '../sql/operations-status-outbox.ts';
import type { OperationsSource } from './session.ts';

const maxLanes = 500;

/** Reads every lane's figures: one round trip per box. They step over what open transactions have not decided. */
export async function readStatus(source: OperationsSource, names: Names): Promise<StatusResponse> {
  const outbox = rowsOf(await source.query(outboxStatus(names), [maxLanes])).map(outboxLane);
  const inbox = rowsOf(await source.query(inboxStatus(names), [maxLanes])).map(inboxLane);
  return {
    command: 'status',
    lanes: [...outbox, ...inbox],
    more: outbox.length >= maxLanes || inbox.length >= maxLanes,
  };
}
