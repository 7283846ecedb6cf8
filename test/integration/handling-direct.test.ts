import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { Deadline } from '../../shared/delivery/deadline.ts';
import { consumeDirect, type DirectOptions } from '../../shared/inbox/direct.ts';
import type { DirectRecord } from '../../shared/inbox/direct-record.ts';
import { Rejected, RetryAfter } from '../../shared/message/errors.ts';
import { engine } from '../support/engine/engine.ts';
import { handlingOn, type TestHandler, type TestOutbox } from '../support/engine/handling.ts';
import type { TestTx } from '../support/engine/test-engine.ts';
import { odd } from '../support/odd.ts';
import { recorder } from '../support/recorder.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear('effects', 'receipts', 'outbox'));

const { bind, write } = handlingOn(db);
const effects = () => db.effects.all();

function record(
  id: string,
  fields: Partial<DirectRecord> & { group?: string; source?: string } = {},
): DirectRecord {
  const { group, source, ...rest } = fields;
  const attribute = (value: string) => ({ stringValue: value });
  return {
    messageId: `sqs-${id}`,
    body: '{"n":1}',
    messageAttributes: {
      'relaybox-id': attribute(id),
      'relaybox-type': attribute('order.placed'),
      ...(source === undefined ? {} : { 'relaybox-source': attribute(source) }),
    },
    attributes: { MessageGroupId: group, ApproximateReceiveCount: '3', SentTimestamp: '1700000000000' },
    eventSourceARN: `arn:aws:sqs:eu-central-1:1:orders${group === undefined ? '' : '.fifo'}`,
    ...rest,
  };
}

const consume = async (
  records: readonly DirectRecord[],
  handler: TestHandler = write,
  options: Partial<DirectOptions<unknown, TestTx, TestOutbox>> = {},
) => {
  const { batchItemFailures } = await consumeDirect(records, {
    store: db.inbox,
    consumer: 'invoicing',
    handler,
    bind,
    deadline: Deadline.in(10_000),
    marginMs: 50,
    ...options,
  });
  return batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
};

describe('straight from the queue, each message takes effect once per consumer', () => {
  test('the receipt commits with the work; a duplicate is acknowledged without running', async () => {
    const seen: unknown[] = [];
    const telemetry = recorder();
    const handler: TestHandler = async (message, tools) => {
      seen.push(message);
      await tools.outbox.add({ destination: 'events', messageType: 'x', payload: 1 });
      await write(message, tools);
    };
    const records = [record('a', { source: 'shop' })];
    expect(await consume(records, handler, { telemetry })).toEqual([]);
    expect(await consume(records, handler, { telemetry })).toEqual([]);
    expect(seen).toEqual([
      expect.objectContaining({
        id: 'a',
        source: 'shop',
        payload: { n: 1 },
        attempt: 3,
        messageType: 'order.placed',
      }),
    ]);
    expect(telemetry.counts).toMatchObject({ Handled: 1, Duplicates: 1 });
    expect(await effects()).toEqual(['a']);
    expect(await db.rows('outbox', {}, { columns: ['headers'] })).toEqual([
      { headers: { 'relaybox-hops': '1' } },
    ]);
    // Another consumer has its own receipt, and so has another source's message of the same id.
    expect(await consume(records, write, { consumer: 'mail' })).toEqual([]);
    expect(await consume([record('a', { source: 'other' })])).toEqual([]);
    expect(await effects()).toEqual(['a', 'a', 'a']);
  });

  test('the same message twice in one batch, and in two invocations at once, runs once', async () => {
    let runs = 0;
    const handler: TestHandler = async (message, tools) => {
      runs += 1;
      await sleep(20);
      await write(message, tools);
    };
    const twice = [record('a'), record('a', { messageId: 'sqs-again' })];
    expect(await Promise.all([consume(twice, handler), consume(twice, handler)])).toEqual([[], []]);
    expect(runs).toBe(1);
    expect(await effects()).toEqual(['a']);
  });

  test('a handler that throws leaves no receipt: the record is reported alone, and passes the next time', async () => {
    let fail = true;
    const handler: TestHandler = async (message, tools) => {
      await write(message, tools);
      if (message.id === 'b' && fail) throw new Error('not yet');
    };
    const records = [record('a'), record('b'), record('c')];
    expect(await consume(records, handler)).toEqual(['sqs-b']);
    fail = false;
    expect(await consume(records, handler)).toEqual([]);
    expect((await effects()).sort()).toEqual(['a', 'b', 'c']);
  });

  test.each(odd)('a handler that throws %s costs only its own record', async (_, thrown) => {
    const handler: TestHandler = async (message, tools) => {
      if (message.id === 'b') throw thrown();
      await write(message, tools);
    };
    expect(await consume([record('a'), record('b'), record('c')], handler)).toEqual(['sqs-b']);
    expect((await effects()).sort()).toEqual(['a', 'c']);
  });

  test('what can’t be read, and what loops, is reported and costs only itself', async () => {
    const telemetry = recorder();
    const loop = record('loop');
    const attributes = { ...loop.messageAttributes, 'relaybox-hops': { stringValue: '65' } };
    const records = [
      record('bad', { messageAttributes: {}, body: 'no envelope' }),
      { ...loop, messageAttributes: attributes },
      record('text', { body: 'no JSON' }),
      record('good'),
    ];
    expect(await consume(records, write, { telemetry })).toEqual(['sqs-bad', 'sqs-loop', 'sqs-text']);
    expect(telemetry.counts).toMatchObject({ Unreadable: 1, HopLimit: 1, Handled: 1 });
    expect(await effects()).toEqual(['good']);
  });
});

describe('on a FIFO queue a group keeps its order', () => {
  test('after a failure the rest of its group is reported too, unbegun; other groups go on', async () => {
    const begun: string[] = [];
    const handler: TestHandler = async (message, tools) => {
      begun.push(message.id);
      await sleep(5);
      if (message.id === 'a2') throw new Error('no');
      await write(message, tools);
    };
    const records = ['a1', 'b1', 'a2', 'b2', 'a3', 'b3'].map((id) => record(id, { group: id.slice(0, 1) }));
    expect(await consume(records, handler)).toEqual(['sqs-a2', 'sqs-a3']);
    expect(begun).not.toContain('a3');
    expect((await effects()).filter((id) => id.startsWith('b'))).toEqual(['b1', 'b2', 'b3']);
    expect(await effects()).toContain('a1');
  });

  test('on a standard queue the group only shares it out fairly', async () => {
    const standard = { eventSourceARN: 'arn:aws:sqs:eu-central-1:1:orders' };
    const records = ['a1', 'a2'].map((id) => record(id, { group: 'a', ...standard }));
    const handler: TestHandler = async (message, tools) => {
      if (message.id === 'a1') throw new Error('no');
      await write(message, tools);
    };
    expect(await consume(records, handler)).toEqual(['sqs-a1']);
    expect(await effects()).toEqual(['a2']);
  });
});

describe('near the deadline', () => {
  test('what was not begun is reported, and what goes on too long is cut off without effect', async () => {
    const records = [record('a'), record('b'), record('c')];
    const slow: TestHandler = async (message, tools) => {
      await write(message, tools);
      await sleep(message.id === 'a' ? 200 : 5_000);
    };
    const began = performance.now();
    const failures = await consume(records, slow, { parallelism: 1, deadline: Deadline.in(700) });
    expect(performance.now() - began).toBeLessThan(4_500);
    expect(failures).toEqual(['sqs-b', 'sqs-c']);
    expect(await effects()).toEqual(['a']);
    expect(await consume(records, write, { deadline: Deadline.in(-5) })).toEqual(['sqs-a', 'sqs-b', 'sqs-c']);
  });

  test('a database that is down reports all, and runs no handler', async () => {
    let runs = 0;
    const down = { ...db.inbox, begin: () => Promise.reject(new Error('down')) };
    const failures = await consume([record('a'), record('b')], () => void runs++, { store: down });
    expect(failures).toEqual(['sqs-a', 'sqs-b']);
    expect(runs).toBe(0);
  });
});

test('Rejected and RetryAfter leave the record to its queue, like any error: reported, without a receipt', async () => {
  for (const thrown of [new Rejected('never'), new RetryAfter(300), new Error('no')]) {
    const answer = await consume([record('a')], () => {
      throw thrown;
    });
    expect(answer).toEqual(['sqs-a']);
    expect(await db.count('receipts')).toBe(0);
  }
});
