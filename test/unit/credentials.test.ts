import { afterEach, describe, expect, test, vi } from 'vitest';
import { loginsOf } from '../../shared/store/credentials.ts';
import type { PostgresHost } from '../../shared/store/postgres/connection-settings.ts';

const arn = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf';
const host: PostgresHost = { host: 'db.example', port: 5433, database: 'd', credentials: { secretArn: arn } };

afterEach(() => vi.restoreAllMocks());

function secrets(versions: { AWSCURRENT?: string | undefined; AWSPENDING?: string | undefined }) {
  const read: string[] = [];
  return {
    read,
    versions,
    readSecret: async (_: string, stage: 'AWSCURRENT' | 'AWSPENDING') => {
      read.push(stage);
      return versions[stage];
    },
  };
}

const secret = (username: string, password: string) =>
  JSON.stringify({ username, password, engine: 'postgres' });

describe('a secret', () => {
  test('is read once for all connections of five minutes, then again', async () => {
    const aws = secrets({ AWSCURRENT: secret('app', 'one') });
    const logins = loginsOf(host, aws);
    expect(await logins()[0]?.()).toEqual({ user: 'app', password: 'one' });
    expect(await logins()[0]?.()).toEqual({ user: 'app', password: 'one' });
    expect(aws.read).toEqual(['AWSCURRENT']);
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 5 * 60_000);
    aws.versions.AWSCURRENT = secret('app_clone', 'two');
    expect(await logins()[0]?.()).toEqual({ user: 'app_clone', password: 'two' });
  });

  test('that was refused is read again, and then its pending version', async () => {
    const aws = secrets({ AWSCURRENT: secret('app', 'one'), AWSPENDING: secret('app', 'two') });
    const logins = loginsOf(host, aws);
    await logins()[0]?.();
    const passwords: unknown[] = [];
    for (const login of logins()) passwords.push((await login())?.password);
    expect(passwords).toEqual(['one', 'one', 'two']);
    expect(aws.read).toEqual(['AWSCURRENT', 'AWSCURRENT', 'AWSPENDING']);
  });

  test('without a pending version has none to try', async () => {
    const aws = secrets({ AWSCURRENT: secret('app', 'one') });
    const [, pending] = loginsOf(host, aws)();
    expect(await pending?.()).toBeUndefined();
  });

  test.each([
    ['no JSON', 'hunter2'],
    ['a user alone', '{"username":"hunter2"}'],
    ['null', 'null'],
    ['a password that is no text', '{"username":"u","password":2}'],
  ])('that is no login says so without showing it: %s', async (_, text) => {
    const [current] = loginsOf(host, secrets({ AWSCURRENT: text }))();
    const error = await current?.().catch((thrown: Error) => thrown);
    expect((error as Error).message).toContain(arn);
    expect((error as Error).message).not.toContain('hunter2');
  });

  test("the settings' user goes before the secret's", async () => {
    const aws = secrets({ AWSCURRENT: secret('admin', 'one') });
    const [login] = loginsOf({ ...host, user: 'relay' }, aws)();
    expect(await login?.()).toEqual({ user: 'relay', password: 'one' });
  });
});

test('an IAM token is signed anew for each connection, for the real host and port', async () => {
  const signed: unknown[] = [];
  const logins = loginsOf(
    { ...host, user: 'relay', credentials: { iam: true } },
    { signToken: async (to) => `token ${signed.push(to)}` },
  );
  expect(await logins()[0]?.()).toEqual({ user: 'relay', password: 'token 1' });
  expect(await logins()[0]?.()).toEqual({ user: 'relay', password: 'token 2' });
  expect(signed[0]).toEqual({ hostname: 'db.example', port: 5433, username: 'relay' });
});

test('a password function is called for each connection', async () => {
  let calls = 0;
  const logins = loginsOf({ ...host, user: 'u', credentials: { password: async () => `p${++calls}` } });
  await logins()[0]?.();
  expect(await logins()[0]?.()).toEqual({ user: 'u', password: 'p2' });
});
