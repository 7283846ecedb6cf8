import { describe, expect, test } from 'vitest';
import {
  createIngest,
  createRelay,
  inboxHandler,
  sqsConsumer,
  transactional,
} from '../../shared/lambda/postgres/index.ts';
import { ConfigurationError } from '../../shared/message/errors.ts';
import { titled } from '../support/titled.ts';

// As JavaScript gives them: no compiler has looked.
const makers: Record<string, (options: Record<string, unknown>) => unknown> = {
  inboxHandler: (options) => inboxHandler({ messageType: 't', ...options }, async () => undefined),
  sqsConsumer: (options) => sqsConsumer(options, async () => undefined),
  transactional: (options) => transactional(options),
  createRelay: (options) => createRelay(options),
  createIngest: (options) => createIngest(options),
};

describe('options that can not work are refused when the function is made, by name and with what they are', () => {
  const wrong: [string, Record<string, unknown>, string][] = [
    ['inboxHandler', { parallelism: 0 }, 'parallelism must be a whole number from 1 to 100, but is 0'],
    ['inboxHandler', { parallelism: Number.NaN }, 'parallelism must be a whole number .* is NaN'],
    ['inboxHandler', { parallelism: '4' }, 'parallelism must be .* is "4"'],
    ['inboxHandler', { batchSize: 0 }, 'batchSize must be .* is 0'],
    ['inboxHandler', { batchSize: -1 }, 'batchSize must be .* is -1'],
    ['inboxHandler', { batchSize: 1.5 }, 'batchSize must be .* is 1.5'],
    ['inboxHandler', { maxRetries: -1 }, 'maxRetries must be .* is -1'],
    ['inboxHandler', { maxRetries: 1.5 }, 'maxRetries must be .* is 1.5'],
    ['inboxHandler', { maxRetries: Number.NaN }, 'maxRetries must be .* is NaN'],
    ['inboxHandler', { maxRetries: 1e12 }, 'maxRetries must be .* is 1000000000000'],
    ['inboxHandler', { maxRetries: null }, 'maxRetries must be .* is null'],
    ['inboxHandler', { retry: { firstSeconds: Number.NaN } }, 'retry .*firstSeconds must be .* is NaN'],
    ['inboxHandler', { retry: { firstSeconds: -5 } }, 'firstSeconds must be .* is -5'],
    ['inboxHandler', { retry: { factor: 0.5 } }, 'factor must be .* is 0.5'],
    ['inboxHandler', { retry: { maxSeconds: Infinity } }, 'maxSeconds must be .* is Infinity'],
    ['inboxHandler', { retry: 5 }, 'retry must be an object, but is 5'],
    ['inboxHandler', { onFailedKey: 'blok' }, 'onFailedKey must be one of block, skip, but is "blok"'],
    ['inboxHandler', { onLeaseLost: 'park' }, 'onLeaseLost must be one of retry, fail, but is "park"'],
    ['inboxHandler', { serializeKeys: 'yes' }, 'serializeKeys must be true or false, but is "yes"'],
    ['sqsConsumer', { serializeKeys: 1 }, 'serializeKeys must be true or false, but is 1'],
    ['transactional', { serializeKeys: 1 }, 'serializeKeys must be true or false, but is 1'],
    ['inboxHandler', { messageType: undefined }, 'messageType must be a text .* is undefined'],
    ['inboxHandler', { messageType: 'relaybox.unreadable' }, 'messageType must be .* "relaybox.unreadable"'],
    ['inboxHandler', { messageType: '' }, 'messageType must be a text .* is ""'],
    ['inboxHandler', { consumer: 7 }, 'consumer must be a text .* is 7'],
    ['inboxHandler', { schema: {} }, 'schema must be a Standard Schema'],
    ['inboxHandler', { raw: 'yes' }, 'raw must be true or false, but is "yes"'],
    ['inboxHandler', { batchSize: 0, parallelism: 0 }, 'batchSize must be .*; parallelism must be'],
    ['sqsConsumer', { parallelism: 0 }, 'parallelism must be .* is 0'],
    ['sqsConsumer', { mapping: {} }, 'mapping must be a function, but is of type object'],
    ['sqsConsumer', { source: '' }, 'source must be a text'],
    ['transactional', { poolSize: 0 }, 'poolSize must be .* is 0'],
    ['transactional', { timeoutEarlyInMillis: Number.NaN }, 'timeoutEarlyInMillis must be .* is NaN'],
    ['transactional', { rollbackOn: true }, 'rollbackOn must be a function, but is true'],
    ['createRelay', { poolSize: 1.5 }, 'poolSize must be .* is 1.5'],
    ['createRelay', { relay: { parallelism: 0 } }, 'relay .*parallelism must be .* is 0'],
    ['createRelay', { relay: { batchSize: 0 } }, 'batchSize must be .* is 0'],
    ['createRelay', { relay: { leaseMs: Number.NaN } }, 'leaseMs must be .* is NaN'],
    ['createRelay', { relay: { buckets: 65 } }, 'buckets must be a whole number from 1 to 64, but is 65'],
    ['createRelay', { relay: { breaker: { factor: 0 } } }, 'relay.breaker .*factor must be .* is 0'],
    ['createIngest', { maxRetries: -1 }, 'maxRetries must be .* is -1'],
  ];
  const cases = wrong.map(([name, options, message]) => [name, titled(options), options, message] as const);
  test.each(cases)('%s: %s', (name, _, options, message) => {
    const make = () => makers[name]?.(options);
    expect(make).toThrow(ConfigurationError);
    expect(make).toThrow(new RegExp(`${name}.* .*${message}`));
  });

  test('and a handler that is none', () => {
    expect(() => inboxHandler({ messageType: 't' }, undefined as never)).toThrow(
      /handler must be a function/,
    );
    expect(() => sqsConsumer({}, {} as never)).toThrow(/handler must be a function, but is of type object/);
  });

  test('what can work is taken, the least and the most of it too', () => {
    for (const options of [{ parallelism: 1, batchSize: 1, maxRetries: 0, retry: { firstSeconds: 0 } }, {}]) {
      makers['inboxHandler']?.(options);
    }
    makers['inboxHandler']?.({ parallelism: 100, batchSize: 10_000, maxRetries: 2_147_483_647, retry: {} });
    for (const name of Object.keys(makers)) makers[name]?.({});
  });
});
