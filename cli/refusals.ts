import { DatabaseUnavailable, RelayboxError, SchemaError } from '../shared/message/errors.ts';
import { loginRefused, sqlNumber } from '../shared/store/sqlserver/connection-errors.ts';

/** What a server refuses, by PostgreSQL's SQLSTATE and SQL Server's number. Texts are never read: servers speak many languages. */
interface Refusal {
  readonly states: readonly string[];
  readonly numbers: readonly number[];
  readonly as: (reason: string, cause: Error) => RelayboxError;
}

const refusals: readonly Refusal[] = [
  {
    // No login, no such database, no more connections, starting or moving: the server answered, and let nobody in.
    states: ['28P01', '28000', '3D000', '53300', '57P03'],
    numbers: [
      916, 921, 922, 923, 924, 927, 942, 945, 976, 978, 983, 4060, 4064, 10928, 10929, 17809, 17892, 18401,
      18450, 18451, 18452, 18456, 18461, 18470, 18486, 18487, 18488, 40197, 40532, 40613, 40615,
    ],
    as: (reason, cause) => new DatabaseUnavailable(`the database let nobody in: ${reason}`, { cause }),
  },
  {
    // No such table, or schema, or column, or procedure.
    states: ['42P01', '3F000', '42703'],
    numbers: [207, 208, 2760, 2812],
    as: (reason, cause) =>
      new SchemaError(
        `the tables are not there as they must be (${reason}): run "relaybox migrate", and check --schema and the tables' names`,
        { cause },
      ),
  },
  {
    // No right: on an object, a column, a statement, the server's state.
    states: ['42501'],
    numbers: [229, 230, 262, 297, 300],
    as: (reason, cause) =>
      new SchemaError(`the login lacks a right (${reason}): "relaybox migrate --check" names the grants`, {
        cause,
      }),
  },
];

/** A server's refusal as an error with a code of ours, so that a script need not know the server's. Anything else as it is. */
export function withCode(error: unknown): unknown {
  if (error instanceof RelayboxError || !(error instanceof Error)) return error;
  const number = sqlNumber(error) ?? (loginRefused(error) ? 18456 : undefined);
  const { code } = error as { readonly code?: unknown };
  const refusal = refusals.find(
    ({ states, numbers }) =>
      (number !== undefined && numbers.includes(number)) ||
      (typeof code === 'string' && states.includes(code)),
  );
  return refusal?.as(error.message, error) ?? error;
}
