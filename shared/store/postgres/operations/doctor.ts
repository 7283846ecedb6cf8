import type { DoctorResponse } from '../../../operations/responses.ts';
import { type CheckOf, examineBy } from '../../operations/examine.ts';
import type { Names } from '../names.ts';
import { lanesChecks } from './doctor-lanes.ts';
import { serverChecks } from './doctor-server.ts';
import { tableChecks } from './doctor-tables.ts';
import type { OperationsSource } from './session.ts';

/** What the checks need. */
export interface DoctorContext {
  readonly source: OperationsSource;
  readonly names: Names;
}

/** One check on PostgreSQL. */
export type Check = CheckOf<DoctorContext>;

/** Runs every check. */
export async function examine(context: DoctorContext): Promise<DoctorResponse> {
  return await examineBy([...serverChecks, ...tableChecks, ...lanesChecks], context);
}
