import { describe, expect, it } from 'vitest';
import { readSettings } from '../../shared/lambda/config.ts';
import { closeConnections, shared } from '../../shared/lambda/connections.ts';
import type { PoolOptions } from '../../shared/lambda/engine.ts';
import { ConfigurationError } from '../../shared/message/errors.ts';

const URL = 'postgres://app:s3cret@127.0.0.1:5432/app';

function problemOf(env: Record<string, string>): string {
  try {
    readSettings(env);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as Error).message;
  }
  throw new Error('the environment was accepted');
}

describe('settings from the environment', () => {
  it('have the documented defaults where only the database is given', () => {
    const settings = readSettings({ RELAYBOX_DATABASE_URL: URL });
    expect(settings).toMatchObject({
      database: { url: URL },
      tables: {},
      source: undefined,
      destinations: {},
      consumer: '',
      relay: {
        mode: 'scheduled',
        batchSize: 50,
        parallelism: 4,
        leaseSeconds: 30,
        afterSuccess: 'keep',
        onFailedKey: 'block',
        retry: { firstSeconds: 5, factor: 2, maxSeconds: 300 },
      },
      messageLease: { minimumSeconds: 120, marginSeconds: 10 },
      retention: { outboxDays: 7, inboxDays: 30, receiptsDays: 30 },
    });
  });

  it('take a database by host, with its password from a secret or signed by IAM', () => {
    const host = { engine: 'postgres', host: 'db.internal', database: 'app' };
    const secret = readSettings({ RELAYBOX_DATABASE: JSON.stringify({ ...host, secretArn: 'arn:x' }) });
    expect(secret.database).toEqual({
      ...host,
      port: 5432,
      user: undefined,
      credentials: { secretArn: 'arn:x' },
      proxy: false,
      tls: true,
    });
    const iam = readSettings({
      RELAYBOX_DATABASE: JSON.stringify({ ...host, user: 'relaybox', iam: true, proxy: true }),
    });
    expect(iam.database).toMatchObject({ user: 'relaybox', credentials: { iam: true }, proxy: true });
  });

  it('give a connection the time that the database may need to wake up', async () => {
    const patienceOf = (connectSeconds?: number) => {
      const host = { host: 'db.internal', database: 'app', secretArn: 'arn:x', connectSeconds };
      const settings = readSettings({ RELAYBOX_DATABASE: JSON.stringify(host) });
      let given: PoolOptions | undefined;
      shared(
        {
          name: `test-${connectSeconds}`,
          connect(_, pool) {
            given = pool;
            return { end: async () => undefined };
          },
        },
        settings,
        { max: 1 },
      );
      return given;
    };
    expect(patienceOf(40)).toMatchObject({ connectTimeoutMs: 40_000 });
    expect(patienceOf()).not.toHaveProperty('connectTimeoutMs');
    expect(() => patienceOf(0)).toThrow(/RELAYBOX_DATABASE\.connectSeconds must be a number from 1 to 300/);
    await closeConnections();
  });

  it('read destinations, and tell a FIFO queue by its URL', () => {
    const settings = readSettings({
      RELAYBOX_DATABASE_URL: URL,
      RELAYBOX_DESTINATIONS: JSON.stringify({
        orders: { type: 'sqs', url: 'https://sqs/1/orders.fifo' },
        plain: { type: 'sqs', url: 'https://sqs/1/plain', onFailedKey: 'skip' },
        events: { type: 'eventbridge', bus: 'main' },
      }),
    });
    expect(settings.destinations).toEqual({
      orders: { type: 'sqs', url: 'https://sqs/1/orders.fifo', fifo: true },
      plain: { type: 'sqs', url: 'https://sqs/1/plain', fifo: false, onFailedKey: 'skip' },
      events: { type: 'eventbridge', bus: 'main' },
    });
  });

  it('take an empty variable for one that is not set', () => {
    const settings = readSettings({
      RELAYBOX_DATABASE_URL: URL,
      RELAYBOX_MODE: '',
      RELAYBOX_DESTINATIONS: '',
    });
    expect(settings.relay.mode).toBe('scheduled');
  });
});

describe('a wrong environment', () => {
  it('is refused with every variable at fault in one error', () => {
    const problem = problemOf({
      RELAYBOX_DATABASE_URL: URL,
      RELAYBOX_MODE: 'sometimes',
      RELAYBOX_BATCH_SIZE: '0',
      RELAYBOX_LEASE_SECONDS: '1e3',
      RELAYBOX_DESTINATIONS: '{"orders":{"type":"kafka"},"events":{"type":"eventbridge"}}',
      RELAYBOX_RETRY: '{"firstSeconds":10,"maxSeconds":5}',
      RELAYBOX_BREAKER: '[1]',
      RELAYBOX_INBOX_WAKE_QUEUE_URLS: '{"order.placed":7}',
    });
    for (const expected of [
      'RELAYBOX_MODE must be one of scheduled, continuous',
      'RELAYBOX_BATCH_SIZE must be a whole number from 1 to 10000',
      'RELAYBOX_LEASE_SECONDS must be a whole number',
      'RELAYBOX_DESTINATIONS.orders.type must be sqs or eventbridge',
      "RELAYBOX_DESTINATIONS.events.bus must be the bus's name or ARN",
      'RELAYBOX_RETRY.maxSeconds must be at least firstSeconds, which is 10',
      'RELAYBOX_BREAKER must be a JSON object',
      'RELAYBOX_INBOX_WAKE_QUEUE_URLS.order.placed must be a text',
    ]) {
      expect(problem).toContain(expected);
    }
  });

  it('says that the database is missing, or given twice, or has no way to a password', () => {
    expect(problemOf({})).toContain('RELAYBOX_DATABASE must be set');
    expect(problemOf({ RELAYBOX_DATABASE_URL: URL, RELAYBOX_DATABASE: '{}' })).toContain('must be left out');
    const host = { host: 'db', database: 'app' };
    expect(problemOf({ RELAYBOX_DATABASE: JSON.stringify(host) })).toContain('exactly one of secretArn');
    expect(problemOf({ RELAYBOX_DATABASE: JSON.stringify({ ...host, iam: true }) })).toContain(
      'RELAYBOX_DATABASE.user must be set',
    );
    expect(problemOf({ RELAYBOX_DATABASE: '{"iam":true,"user":"u"}' })).toContain(
      'RELAYBOX_DATABASE.host must be set',
    );
  });

  it('names a misspelt setting', () => {
    const database = JSON.stringify({ host: 'db', database: 'app', secretARN: 'arn:x' });
    expect(problemOf({ RELAYBOX_DATABASE: database })).toContain(
      'RELAYBOX_DATABASE.secretARN must be left out',
    );
  });

  it('never shows a value, which may be a secret', () => {
    expect(problemOf({ RELAYBOX_DATABASE_URL: 's3cret@nowhere' })).not.toContain('s3cret');
    expect(problemOf({ RELAYBOX_DATABASE: '{"host":"db","password":"s3cret"' })).not.toContain('s3cret');
    expect(
      problemOf({ RELAYBOX_DATABASE: '{"host":"db","database":"a","password":"s3cret"}' }),
    ).not.toContain('s3cret');
  });
});
