import type { LaneStatus, StatusResponse } from '../../../operations/responses.ts';
import { rowsOf } from '../../operations/rows.ts';
import { inboxLane, outboxLane } from '../../operations/status-rows.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { inboxLanes, inboxStatus } from '../sql/operations-status-inbox.ts';
import { outboxLanes, outboxStatus } from '../sql/operations-status-outbox.ts';
import { inTransaction, type OperationsSource, reading } from './session.ts';

const maxLanes = 500;

/** Reads every lane's figures in one consistent look. */
export async function readStatus(source: OperationsSource, names: Names): Promise<StatusResponse> {
  return await inTransaction(source, reading, async (client) => {
    const outbox = await outboxFigures(client, names);
    const inbox = await inboxFigures(client, names);
    return {
      command: 'status',
      lanes: [...outbox, ...inbox],
      more: outbox.length === maxLanes || inbox.length === maxLanes,
    };
  });
}

async function outboxFigures(client: Database, names: Names): Promise<readonly LaneStatus[]> {
  const found = rowsOf(await client.query(outboxLanes(names), [maxLanes]));
  if (found.length === 0) return [];
  const lanes = found.map((row) => row.text('destination'));
  return rowsOf(await client.query(outboxStatus(names), [lanes])).map(outboxLane);
}

async function inboxFigures(client: Database, names: Names): Promise<readonly LaneStatus[]> {
  const found = rowsOf(await client.query(inboxLanes(names), [maxLanes]));
  if (found.length === 0) return [];
  const consumers = found.map((row) => row.text('consumer'));
  const types = found.map((row) => row.text('message_type'));
  return rowsOf(await client.query(inboxStatus(names), [consumers, types])).map(inboxLane);
}
