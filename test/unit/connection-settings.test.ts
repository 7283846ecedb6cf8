import { describe, expect, test } from 'vitest';
import { ConfigurationError } from '../../shared/message/errors.ts';
import { isLoopback } from '../../shared/store/connection-url.ts';
import { resolveSettings } from '../../shared/store/postgres/connection-settings.ts';

test('a URL says it all, escapes included', () => {
  expect(resolveSettings({ url: 'postgres://us%40er:p%3Aw%25@db.example:6432/my%20db' })).toEqual({
    host: 'db.example',
    port: 6432,
    database: 'my db',
    user: 'us@er',
    credentials: { password: 'p:w%' },
    tls: true,
  });
});

describe('TLS is verified', () => {
  test.each([
    ['postgres://u:p@db.example/d', true],
    ['postgresql://u:p@10.0.0.7/d', true],
    ['postgres://u:p@localhost.example/d', true],
    ['postgres://u:p@127.0.0.1.example/d', true],
    ['postgres://u:p@localhost/d', false],
    ['postgres://u:p@127.0.0.1:5432/d', false],
    ['postgres://u:p@[::1]/d', false],
    ['postgres://u:p@localhost/d?sslmode=verify-full', true],
    ['postgres://u:p@db.example/d?sslmode=require', true],
    ['postgres://u:p@db.example/d?sslmode=disable', false],
  ])('%s: %s', (url, tls) => {
    expect(resolveSettings({ url }).tls).toBe(tls);
  });

  test('also by default on a host, unless said otherwise', () => {
    const host = { host: 'db.example', database: 'd', user: 'u', credentials: { password: 'p' } };
    expect(resolveSettings(host).tls).toBe(true);
    expect(resolveSettings({ ...host, tls: false }).tls).toBe(false);
    expect(isLoopback('::1')).toBe(true);
  });
});

describe('a wrong URL says what is wrong, never what it was', () => {
  test.each([
    ['not a url secret', /can't be read/],
    ['postgres://u:secret@ho st/d', /can't be read/],
    ['mysql://u:secret@host/d', /begins with "mysql:"/],
    ['postgres://u:secret@/d', /can't be read|names no host/],
    ['postgres://u:secret@host', /names no database/],
    ['postgres://host/d', /names no user/],
    ['postgres://u:secret%zz@host/d', /password has a %/],
    ['postgres://u:secret@host/d?sslmode=no-verify', /sslmode=no-verify/],
    ['postgres://u:secret@host/d?options=-c%20x=1', /parameter "options"/],
  ])('%s', (url, reason) => {
    let error: unknown;
    try {
      resolveSettings({ url });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ConfigurationError);
    expect((error as Error).message).toMatch(reason);
    expect((error as Error).message).not.toContain('secret');
  });

  test('IAM without a user, or without TLS, contradicts itself', () => {
    const host = { host: 'db.example', database: 'd', credentials: { iam: true } } as const;
    expect(() => resolveSettings(host)).toThrow(/needs its user/);
    expect(() => resolveSettings({ ...host, user: 'u', tls: false })).toThrow(/only TLS/);
  });
});
