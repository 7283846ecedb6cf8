import { afterAll, expect, it } from 'vitest';
import { readSettings } from '../../shared/lambda/config.ts';
import { closeConnections } from '../../shared/lambda/connections.ts';
import { maintainFor } from '../../shared/lambda/maintain.ts';
import { migrateFor } from '../../shared/lambda/migrate.ts';
import { cli, fakeLambda } from '../support/cli.ts';
import { engine } from '../support/engine/engine.ts';
import { adminEngine } from '../support/engine/lambda.ts';

const db = await engine.createDatabase();
/** Nothing listens there: a function that went as far as the database would say so. */
const nowhere = () =>
  readSettings({ RELAYBOX_DATABASE_URL: Object.assign(new URL(db.url), { port: '1' }).href });
const report = { applied: ['1 tables'], pending: [], missing: [], seedIdentity: false };
const functions: Record<string, (event: unknown) => Promise<unknown>> = {
  maintain: (event) => maintainFor(adminEngine)({ settings: nowhere() })(event),
  migrate: (event) => migrateFor(adminEngine)({ settings: nowhere() })(event),
  relay: async () => ({ settled: 0, workLeft: false }),
  migrated: async () => report,
};
const lambda = await fakeLambda((name, event) => functions[name]?.(event) ?? Promise.reject(new Error(name)));
afterAll(async () => {
  await lambda.stop();
  await db.drop();
});

it('relaybox migrate --function takes the report of the migrate function', async () => {
  const { code, stdout } = await cli(['migrate', '--function', 'migrated'], lambda.env);
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'applied: step 1 tables\n' });
});

it('relaybox migrate of the maintain function runs no cycle there, and says so', async () => {
  const { code, stderr } = await cli(['migrate', '--check', '--function', 'maintain'], lambda.env);
  expect(stderr).toContain('unknown command "migrate"');
  expect(code).toBe(2);
});

it('relaybox migrate of any other function says which one it takes, in one line of JSON', async () => {
  const wrong = await cli(['migrate', '--check', '--json', '--function', 'relay'], lambda.env);
  expect(wrong.code, wrong.stderr).toBe(1);
  expect(wrong.json()).toMatchObject({ error: { code: 'RELAYBOX_FUNCTION_FAILED' } });
  expect(wrong.stderr).toContain('is it the migrate function');
});

it('another command of the migrate function migrates nothing', async () => {
  const { code, stderr } = await cli(['status', '--function', 'migrate'], lambda.env);
  expect(stderr).toContain('command that is not migrate');
  expect(code).toBe(1);
});

it('relaybox migrate --check --function names a grant that the function’s login lacks, and ends with 1', async () => {
  const { url, remove } = await db.stranger();
  const login = new URL(url).username;
  const may = (what: string) =>
    db.sql({
      postgres: what.replace('[version]', 'relaybox_schema_version'),
      sqlserver: what.replace('[version]', 'OBJECT::dbo.RelayboxSchemaVersion'),
    });
  await may(`GRANT SELECT ON [version] TO ${login}`);
  functions['weak'] = migrateFor(adminEngine)({ settings: readSettings({ RELAYBOX_DATABASE_URL: url }) });
  functions['strong'] = migrateFor(adminEngine)({
    settings: readSettings({ RELAYBOX_DATABASE_URL: db.url }),
  });
  try {
    const weak = await cli(['migrate', '--check', '--json', '--function', 'weak'], lambda.env);
    const byUrl = await cli(['migrate', '--check', '--json', '--url', url]);
    expect(weak.code, weak.stderr).toBe(1);
    expect(weak.json()).toMatchObject({ pending: [], missing: [expect.stringContaining('GRANT SELECT ON')] });
    expect(weak.json()).toEqual(byUrl.json());
    const strong = await cli(['migrate', '--check', '--function', 'strong'], lambda.env);
    expect(strong).toMatchObject({ code: 0, stdout: 'The tables are as this version needs them.\n' });
  } finally {
    await closeConnections();
    await may(`REVOKE SELECT ON [version] FROM ${login}`);
    await remove();
  }
});
