import type { RequestOf } from '../../../operations/operations.ts';
import type { HealthResponse } from '../../../operations/responses.ts';
import { healthBy } from '../../operations/health-checks.ts';
import { checkSchema } from '../check.ts';
import { relayAges } from '../sql/operations-maintain.ts';
import type { DoctorContext } from './doctor.ts';
import { rowsOf } from './session.ts';
import { readStatus } from './status.ts';

/** Ready or not, from what the database shows. */
export async function health(
  { source, names }: DoctorContext,
  request: RequestOf<'health'>,
): Promise<HealthResponse> {
  return await healthBy(
    {
      checkSchema: () => checkSchema(source, names),
      status: () => readStatus(source, names),
      relayAges: async () => rowsOf(await source.query(relayAges(names))),
    },
    request,
  );
}
