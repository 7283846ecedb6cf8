import { describe, expect, test } from 'vitest';
import { ingest } from '../../shared/inbox/ingest.ts';
import { UNREADABLE_TYPE } from '../../shared/message/envelope/names.ts';
import type { SqsRecord } from '../../shared/message/envelope/read.ts';
import type { IngestResult, NewInboxRow } from '../../shared/store/inbox-store.ts';

const fifo = 'arn:aws:sqs:eu-central-1:1:orders.fifo';

/** A record of ours; its group is on FIFO only. */
function record(id: string, group?: string, body = '{}'): SqsRecord {
  return {
    messageId: `sqs-${id}`,
    body,
    attributes: { MessageGroupId: group },
    messageAttributes: {
      'relaybox-id': { stringValue: id },
      'relaybox-type': { stringValue: 'order.placed' },
    },
    eventSourceARN: group === undefined ? 'arn:aws:sqs:eu-central-1:1:orders' : fifo,
  };
}

/** A store that refuses a statement as long as one of its rows is in `refused`, as a database does. */
function store(refuses: (row: NewInboxRow) => string | undefined) {
  const statements: string[][] = [];
  const stored: NewInboxRow[] = [];
  return {
    statements,
    stored,
    async ingest(rows: readonly NewInboxRow[]): Promise<IngestResult[]> {
      statements.push(rows.map((row) => row.externalMessageId));
      for (const row of rows) {
        const code = refuses(row);
        if (code !== undefined) throw Object.assign(new Error(`error ${code}`), { code });
      }
      stored.push(...rows);
      return rows.map(() => ({ added: true, differs: false }));
    },
  };
}

const who = { consumer: '', source: 'orders-service' };
const failures = (response: { batchItemFailures: { itemIdentifier: string }[] }) =>
  response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);

describe('one bad row costs only itself', () => {
  test('a batch is one statement where nothing is refused, and an empty one none', async () => {
    const one = store(() => undefined);
    expect(await ingest([record('1'), record('2')], { ...who, store: one })).toEqual({
      batchItemFailures: [],
    });
    expect(one.statements).toEqual([['1', '2']]);
    const none = store(() => undefined);
    expect(await ingest([], { ...who, store: none })).toEqual({ batchItemFailures: [] });
    expect(none.statements).toEqual([]);
  });

  test('a row that the database refuses is kept as an unreadable one, the others are stored', async () => {
    const one = store((row) => (row.externalMessageId === '3' ? '54000' : undefined));
    const records = ['1', '2', '3', '4', '5'].map((id) => record(id));
    expect(failures(await ingest(records, { ...who, store: one }))).toEqual([]);
    expect(one.stored.map((row) => row.externalMessageId).sort()).toEqual(['1', '2', '4', '5', 'sqs-3']);
    const kept = one.stored.find((row) => row.messageType === UNREADABLE_TYPE);
    expect(kept?.failedReason).toContain('the database refused it');
  });

  test('what can not be stored at all is reported, alone', async () => {
    const one = store((row) => (row.externalMessageId.endsWith('3') ? '22021' : undefined));
    const records = ['1', '2', '3', '4'].map((id) => record(id));
    expect(failures(await ingest(records, { ...who, store: one }))).toEqual(['sqs-3']);
    expect(one.stored.map((row) => row.externalMessageId).sort()).toEqual(['1', '2', '4']);
  });

  test('on FIFO, what comes later in the group of a record that was not stored is not stored either', async () => {
    const one = store((row) => (row.externalMessageId.endsWith('2') ? '22021' : undefined));
    const records = [
      record('1', 'a'),
      record('2', 'a'),
      record('3', 'b'),
      record('4', 'a'),
      record('5', 'b'),
    ];
    expect(failures(await ingest(records, { ...who, store: one }))).toEqual(['sqs-2', 'sqs-4']);
    expect(one.stored.map((row) => row.externalMessageId)).toEqual(['1', '3', '5']);
  });

  test('an unreadable record does not hold up its FIFO group', async () => {
    const one = store(() => undefined);
    const bad = { ...record('1', 'a', 'x'), messageAttributes: {} };
    expect(failures(await ingest([bad, record('2', 'a')], { ...who, store: one }))).toEqual([]);
    expect(one.stored.map((row) => row.failedReason !== null)).toEqual([true, false]);
  });
});

describe('what the database can not take now stays on the queue', () => {
  test.each(['57P01', '53300', '08006', '42P01', '25006', 'ECONNREFUSED', 'EPIPE'])('%s', async (code) => {
    const one = store(() => code);
    const records = ['1', '2', '3'].map((id) => record(id));
    expect(failures(await ingest(records, { ...who, store: one }))).toEqual(['sqs-1', 'sqs-2', 'sqs-3']);
    expect(one.statements).toHaveLength(1);
  });

  test('an outage in the middle of the halving reports what is not stored, and no more', async () => {
    let calls = 0;
    const one = store((row) => {
      if (row.externalMessageId === '1') calls++;
      return row.externalMessageId === '4' ? (calls > 1 ? '57P01' : '22021') : undefined;
    });
    const records = ['1', '2', '3', '4'].map((id) => record(id));
    expect(failures(await ingest(records, { ...who, store: one }))).toEqual(['sqs-3', 'sqs-4']);
    expect(one.stored.map((row) => row.externalMessageId)).toEqual(['1', '2']);
  });
});

describe('wakes', () => {
  test('go to the types that were added, once each, and never fail the batch', async () => {
    const woken: (readonly string[])[] = [];
    const wake = async (types: readonly string[]) => {
      woken.push(types);
      throw new Error('no queue');
    };
    const one = store(() => undefined);
    const bad = { ...record('3'), messageAttributes: {} };
    expect(failures(await ingest([record('1'), record('2'), bad], { ...who, store: one, wake }))).toEqual([]);
    expect(woken).toEqual([['order.placed']]);
  });

  test('nobody is woken for duplicates', async () => {
    let woken = 0;
    const wake = async () => void woken++;
    const duplicates = {
      ingest: async (rows: readonly NewInboxRow[]) => rows.map(() => ({ added: false, differs: false })),
    };
    await ingest([record('1')], { ...who, store: duplicates, wake });
    expect(woken).toBe(0);
  });
});

test('a message that was caused by messages too many times over starts as Failed', async () => {
  const one = store(() => undefined);
  const hops = (id: string, count: string): SqsRecord => {
    const plain = record(id);
    return {
      ...plain,
      messageAttributes: { ...plain.messageAttributes, 'relaybox-hops': { stringValue: count } },
    };
  };
  await ingest([hops('1', '64'), hops('2', '65'), hops('3', 'junk')], { ...who, store: one });
  expect(one.stored.map((row) => row.failedReason)).toEqual([
    null,
    expect.stringContaining('65 times over'),
    null,
  ]);
  expect(one.stored.map((row) => row.messageType)).toEqual(['order.placed', 'order.placed', 'order.placed']);
});
