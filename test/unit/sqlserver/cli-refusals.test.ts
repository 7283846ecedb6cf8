import { afterEach, expect, it } from 'vitest';
import { withCode } from '../../../cli/refusals.ts';
import { cli } from '../../support/cli.ts';
import { type TdsReply, type TdsRequest, type TdsServer, tdsServer } from '../../support/tds-server.ts';

// What the command line makes of a SQL Server's refusals, by number alone: texts are in the server's language.

let server: TdsServer | undefined;
afterEach(async () => await server?.close());

async function status(answer: (request: TdsRequest) => TdsReply | undefined) {
  server = await tdsServer(answer);
  const url = `sqlserver://u:p@127.0.0.1:${server.port}/app?encrypt=false`;
  const { code, json } = await cli(['status', '--json', '--url', url]);
  return { exit: code, code: (json() as { readonly error: { readonly code: string } }).error.code };
}

const toLogin =
  (error: number) =>
  ({ kind }: TdsRequest) =>
    kind === 'login' ? { error } : undefined;
const toStatements =
  (error: number) =>
  ({ kind }: TdsRequest) =>
    kind === 'rpc' || kind === 'batch' ? { error } : undefined;

it('the command line ends with 3 where a SQL Server refuses the login, or has no such database', async () => {
  const expected = { exit: 3, code: 'RELAYBOX_DATABASE_UNAVAILABLE' };
  expect(await status(toLogin(18456))).toEqual(expected);
  await server?.close();
  expect(await status(toLogin(4060))).toEqual(expected);
});

it('the command line names the schema where a SQL Server has no such table, or the login no right', async () => {
  const expected = { exit: 1, code: 'RELAYBOX_SCHEMA' };
  expect(await status(toStatements(208))).toEqual(expected);
  await server?.close();
  expect(await status(toStatements(229))).toEqual(expected);
});

/** As mssql throws it, who knows of the server's error what stands beside it here. */
const refused = (number: number): Error =>
  Object.assign(new Error('verweigert'), { code: 'EREQUEST', number, originalError: new Error() });

it.each([
  ['RELAYBOX_DATABASE_UNAVAILABLE', 'nobody in', [18452, 18470, 18486, 18487, 18488, 40615, 40613, 916]],
  ['RELAYBOX_SCHEMA', 'relaybox migrate"', [207, 2760, 2812]],
  ['RELAYBOX_SCHEMA', 'migrate --check', [230, 262, 297, 300]],
])('SQL Server’s numbers for %s (%s)', (code, message, numbers) => {
  for (const number of numbers) {
    expect(withCode(refused(number)), String(number)).toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
  }
});

it('what has no code of ours is passed on as SQL Server said it', () => {
  const error = refused(547);
  expect(withCode(error)).toBe(error);
});
