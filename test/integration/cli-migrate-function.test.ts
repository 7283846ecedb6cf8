import { afterAll, expect, it } from 'vitest';
import { readSettings } from '../../shared/lambda/config.ts';
import { maintainFor } from '../../shared/lambda/maintain.ts';
import { migrateFor } from '../../shared/lambda/migrate.ts';
import { cli, fakeLambda } from '../support/cli.ts';
import { adminEngine } from '../support/engine/lambda.ts';

// Nothing listens there: a function that went as far as the database would say so.
const settings = readSettings({ RELAYBOX_DATABASE_URL: 'postgres://x:y@127.0.0.1:1/z' });
const report = { applied: ['1 tables'], pending: [], seedIdentity: false };
const functions: Record<string, (event: unknown) => Promise<unknown>> = {
  maintain: maintainFor(adminEngine)({ settings }),
  migrate: migrateFor(adminEngine)({ settings }),
  relay: async () => ({ settled: 0, workLeft: false }),
  migrated: async () => report,
};
const lambda = await fakeLambda((name, event) => functions[name]?.(event) ?? Promise.reject(new Error(name)));
afterAll(lambda.stop);

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
