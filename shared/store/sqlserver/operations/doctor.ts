import type { DoctorResponse } from '../../../operations/responses.ts';
import { type CheckOf, examineBy } from '../../operations/examine.ts';
import { ofLane, ofRelays } from '../../operations/lane-findings.ts';
import { rowsOf } from '../../operations/rows.ts';
import type { Names } from '../names.ts';
import { relayAges } from '../sql/operations-maintain.ts';
import { serverChecks } from './doctor-server.ts';
import { tableChecks } from './doctor-tables.ts';
import type { OperationsSource } from './session.ts';
import { readStatus } from './status.ts';

/** What the checks need. */
export interface DoctorContext {
  readonly source: OperationsSource;
  readonly names: Names;
}

/** Checks of the lanes' figures, and of who works on them. */
const lanesChecks: readonly CheckOf<DoctorContext>[] = [
  {
    check: 'lane',
    look: async ({ source, names }) => (await readStatus(source, names)).lanes.flatMap(ofLane),
  },
  {
    check: 'worker',
    look: async ({ source, names }) => ofRelays(rowsOf(await source.query(relayAges(names)))),
  },
];

/** Runs every check. */
export async function examine(context: DoctorContext): Promise<DoctorResponse> {
  return await examineBy([...serverChecks, ...tableChecks, ...lanesChecks], context);
}
