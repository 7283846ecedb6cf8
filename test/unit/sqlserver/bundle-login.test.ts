import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TdsServer, tdsServer } from '../../support/tds-server.ts';

const bundle = fileURLToPath(new URL('../../../dist/bundles/sqlserver/relay', import.meta.url));

const CALLER = `
const { handler } = await import(process.argv[1]);
const context = { awsRequestId: 'r', functionName: 'f', getRemainingTimeInMillis: () => 10_000 };
const said = await handler({}, context).then((result) => JSON.stringify(result), String);
process.stdout.write(said, () => process.exit(0));
`;

const alone = mkdtempSync(join(tmpdir(), 'relaybox-login-'));
let server: TdsServer;

beforeAll(async () => {
  // It knows the password, and no table.
  server = await tdsServer(({ kind }) => (kind === 'rpc' ? { error: 208 } : undefined));
  cpSync(bundle, alone, { recursive: true });
});
afterAll(async () => {
  await server.close();
  rmSync(alone, { recursive: true, force: true });
});

it('the relay’s bundle logs in by password without the identity libraries of Azure, which it does not carry', async () => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', CALLER, join(alone, 'index.mjs')],
    {
      cwd: alone,
      env: {
        AWS_REGION: 'eu-central-1',
        RELAYBOX_DATABASE_URL: `sqlserver://sa:secret@127.0.0.1:${server.port}/app`,
        RELAYBOX_SOURCE: 'test',
      },
    },
  );
  // It got as far as asking for the schema's version, and was told that there is no such table.
  expect(stdout).toContain('lacks migration 0001_tables.sql');
  expect(server.requests.map(({ kind }) => kind).slice(0, 3)).toEqual(['login', 'batch', 'rpc']);
  const code = readFileSync(join(alone, 'index.mjs'), 'utf8');
  // What the library would bring: the address that it gets its tokens from.
  expect(code.includes('login.microsoftonline.com')).toBe(false);
});
