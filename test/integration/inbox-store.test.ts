import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClaimedInboxMessage } from '../../shared/store/inbox-store.ts';
import { engine } from '../support/engine/engine.ts';
import { above, secondsFromNow } from '../support/engine/values.ts';
import { claimRequest, inboxRow, limits } from '../support/inbox-rows.ts';

const db = await engine.createDatabase({ timezone: 'Asia/Kolkata' });
afterAll(() => db.drop());
beforeEach(() => db.clear('inbox', 'keys', 'inboxLanes', 'receipts'));

const store = db.inbox;
const ids = (messages: readonly ClaimedInboxMessage[]): string[] =>
  messages.map((message) => message.externalMessageId);

async function succeed(message: ClaimedInboxMessage): Promise<readonly string[] | undefined> {
  const transaction = await store.begin(limits);
  const marked = await store.markProcessed(transaction, message);
  if (marked === undefined) await transaction.rollback();
  else await transaction.commit();
  return marked?.nextTypes;
}

async function only(request = claimRequest()): Promise<ClaimedInboxMessage> {
  const { messages } = await store.claim(request);
  expect(messages).toHaveLength(1);
  return messages[0] as ClaimedInboxMessage;
}

const failOf = (message: ClaimedInboxMessage, retryInSeconds: number | undefined = 0) =>
  store.markFailed([{ message, reason: 'no', retryInSeconds }], { onFailedKey: 'block' });

describe('ingest stores each message once', () => {
  test('duplicates fall out, within the batch and against the table, whatever state the row is in', async () => {
    const [a, b, other] = [inboxRow({ partitionKey: 'k' }), inboxRow(), inboxRow({ payload: '{"other":1}' })];
    expect(await store.ingest([a, b, a, { ...b, payload: '{"b":2}' }])).toEqual([
      { added: true, differs: false },
      { added: true, differs: false },
      { added: false, differs: false },
      { added: false, differs: true },
    ]);
    await succeed((await store.claim(claimRequest({ limit: 1 }))).messages[0] as ClaimedInboxMessage);
    expect(await store.ingest([other, { ...a, payload: '{}' }, b])).toEqual([
      { added: true, differs: false },
      { added: false, differs: true },
      { added: false, differs: false },
    ]);
  });

  test('ids that differ in case, a trailing space or normalisation are different messages, and so are two consumers’ copies', async () => {
    const row = inboxRow({ externalMessageId: 'id' });
    const others = ['ID', 'id ', 'ord\u00e9r', 'orde\u0301r', 'stra\u00dfe', 'strasse'];
    const rows = [
      row,
      ...others.map((externalMessageId) => ({ ...row, externalMessageId })),
      { ...row, consumer: 'mail' },
      { ...row, source: 'other' },
    ];
    expect((await store.ingest(rows)).map(({ added }) => added)).toEqual(rows.map(() => true));
    expect((await store.ingest(rows)).map(({ added }) => added)).toEqual(rows.map(() => false));
  });

  test('a row that could not be read starts as Failed, without a key, with its reason and raw body', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k', failedReason: 'no id\0', payload: 'raw\0 \ud800' })]);
    expect(
      await db.rows(
        'inbox',
        {},
        { columns: ['state', 'partition_key', 'last_error', 'payload', 'processed_at_utc'] },
      ),
    ).toEqual([
      {
        state: 3,
        partition_key: null,
        last_error: 'no id\uFFFD',
        payload: 'raw\uFFFD \uFFFD',
        processed_at_utc: expect.any(String),
      },
    ]);
    expect(await db.rows('keys')).toEqual([]);
    expect((await store.claim(claimRequest())).messages).toEqual([]);
  });

  test('text travels as it is: escapes, quotes, other alphabets', async () => {
    const payload = JSON.stringify({ text: '\\u0000 "quoted" Grüße 🎉 \u2028', nul: '\0' });
    await store.ingest([
      inboxRow({ payload, headers: { traceparent: '00-"x"', ключ: '{}' }, correlationId: 'c' }),
    ]);
    const message = await only();
    expect(message.payload).toBe(payload);
    expect(message.headers).toEqual({ traceparent: '00-"x"', ключ: '{}' });
    expect(message.correlationId).toBe('c');
    expect(message.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Math.abs(Date.parse(message.createdAt) - Date.now())).toBeLessThan(60_000);
  });

  test('what identifies a message is refused where it can’t be stored exactly', async () => {
    await expect(store.ingest([inboxRow({ externalMessageId: 'x'.repeat(301) })])).rejects.toThrow(
      'externalMessageId was refused: it must be at most 300',
    );
    await expect(store.ingest([inboxRow({ partitionKey: 'a\0' })])).rejects.toThrow(
      'partitionKey was refused',
    );
  });

  test('the same batch stored by many at once is stored once', async () => {
    const rows = Array.from({ length: 30 }, (_, n) => inboxRow({ partitionKey: n % 2 ? `k${n % 5}` : null }));
    const shuffled = (n: number) => rows.map((_, i) => rows[(i * 7 + n * 11) % 30] ?? inboxRow());
    const results = await Promise.all(
      [0, 1, 2, 3, 4, 5].map(async (n) =>
        store.ingest(shuffled(n).map((row) => (n === 5 ? { ...row, payload: '{"mine":1}' } : row))),
      ),
    );
    expect(results.flat().filter((result) => result.added)).toHaveLength(30);
    expect(await db.count('inbox')).toBe(30);
    // Whoever came second was told about the other payload, also where both were on their way at once.
    const mine = await db.count('inbox', { payload: '{"mine":1}' });
    expect(results[5]?.filter((result) => result.differs)).toHaveLength(30 - mine);
  });
});

describe('a claim takes what is due, and counts the attempt', () => {
  test('in order of arrival, up to the count and up to the bytes, but at least one', async () => {
    // Two bytes each, in UTF-8 as in UTF-16.
    const payload = JSON.stringify('ß'.repeat(500));
    const rows = Array.from({ length: 6 }, () => inboxRow({ payload }));
    await store.ingest(rows);
    const arrived = rows.map((row) => row.externalMessageId);
    const byCount = await store.claim(claimRequest({ limit: 2 }));
    expect(ids(byCount.messages)).toEqual(arrived.slice(0, 2));
    expect(byCount.messages.map((message) => message.attempt)).toEqual([1, 1]);
    expect(ids((await store.claim(claimRequest({ maxBytes: 2100 }))).messages)).toEqual(arrived.slice(2, 4));
    expect(ids((await store.claim(claimRequest({ maxBytes: 1 }))).messages)).toEqual(arrived.slice(4, 5));
  });

  test('each message has a token of its own, and is in one hand only, however many claim at once', async () => {
    await store.ingest(
      Array.from({ length: 60 }, (_, n) => inboxRow({ partitionKey: n % 3 ? null : `k${n}` })),
    );
    const claims = await Promise.all(
      [1, 2, 3, 4, 5, 6, 7, 8].map(() => store.claim(claimRequest({ limit: 10 }))),
    );
    const messages = claims.flatMap((claim) => claim.messages);
    expect(new Set(messages.map((message) => message.rowId)).size).toBe(messages.length);
    expect(new Set(messages.map((message) => message.lockToken)).size).toBe(messages.length);
    const rest = await store.claim(claimRequest({ limit: 60 }));
    expect(messages.length + rest.messages.length).toBe(60);
  });

  test('a paused type answers nothing; another does', async () => {
    await store.ingest([inboxRow(), inboxRow({ partitionKey: 'k' }), inboxRow({ messageType: 'other' })]);
    await db.insert('inboxLanes', { message_type: 'order.placed', paused_at_utc: secondsFromNow(0) });
    expect((await store.claim(claimRequest())).messages).toEqual([]);
    expect(await store.secondsToNextDue({ consumer: '', messageType: 'order.placed' })).toBeUndefined();
    await only(claimRequest({ messageType: 'other' }));
    await db.update('inboxLanes', { paused_until_utc: secondsFromNow(60) });
    expect((await store.claim(claimRequest())).messages).toEqual([]);
    expect(await store.secondsToNextDue({ consumer: '', messageType: 'order.placed' })).toBeGreaterThan(55);
    await db.update('inboxLanes', { paused_until_utc: secondsFromNow(-1) });
    expect((await store.claim(claimRequest())).messages).toHaveLength(2);
  });

  test('a claim leaves word that the type has a handler', async () => {
    await store.claim(claimRequest({ messageType: 'seen' }));
    const seen = { message_type: 'seen', last_claim_at_utc: above(secondsFromNow(-60)) };
    expect(await db.count('inboxLanes', seen)).toBe(1);
  });

  test('the handler’s own retries are written to the rows it claims', async () => {
    await store.ingest([inboxRow({ maxRetries: 5 })]);
    const message = await only(claimRequest({ maxRetries: 0 }));
    expect(message.maxRetries).toBe(0);
    expect((await failOf(message)).ended).toEqual([message.rowId]);
  });
});

describe('settling is fenced by the token and the lease', () => {
  test('success ends the row and takes the claim’s count back', async () => {
    await store.ingest([inboxRow()]);
    await succeed(await only());
    expect(
      await db.rows('inbox', {}, { columns: ['state', 'retry_count', 'lock_token', 'locked_until_utc'] }),
    ).toEqual([{ state: 2, retry_count: 0, lock_token: null, locked_until_utc: null }]);
  });

  test('failures wait, then end: five retries are six attempts', async () => {
    await store.ingest([inboxRow({ maxRetries: 5 })]);
    for (let attempt = 1; attempt <= 6; attempt++) {
      const message = await only();
      expect(message.attempt).toBe(attempt);
      const result = await failOf(message);
      expect(result).toMatchObject({ settled: [message.rowId], lost: [] });
      expect(result.ended).toHaveLength(attempt === 6 ? 1 : 0);
    }
    expect(await db.rows('inbox', {}, { columns: ['state', 'retry_count', 'last_error'] })).toEqual([
      { state: 3, retry_count: 6, last_error: 'no' },
    ]);
  });

  test('a wait keeps a message back, and an absurd one still is written', async () => {
    await store.ingest([inboxRow(), inboxRow()]);
    const { messages } = await store.claim(claimRequest());
    const [first, second] = messages as [ClaimedInboxMessage, ClaimedInboxMessage];
    await store.markFailed(
      [
        { message: first, reason: 'a\0b', retryInSeconds: 30.5 },
        { message: second, reason: 'b', retryInSeconds: 1e18 },
      ],
      { onFailedKey: 'block' },
    );
    expect((await store.claim(claimRequest())).messages).toEqual([]);
    const seconds = await store.secondsToNextDue({ consumer: '', messageType: 'order.placed' });
    expect(seconds).toBeGreaterThan(28);
    expect(seconds).toBeLessThanOrEqual(30.5);
  });

  test('a release counts nothing and is due at once', async () => {
    await store.ingest([inboxRow(), inboxRow({ partitionKey: 'k' })]);
    const { messages } = await store.claim(claimRequest());
    const result = await store.release(messages);
    expect(result.settled).toHaveLength(2);
    expect(result.nextTypes).toEqual(['order.placed']);
    const again = await store.claim(claimRequest());
    expect(again.messages.map((message) => message.attempt)).toEqual([1, 1]);
  });

  test.each([null, 'k'])('after the lease has run out nothing is changed (key %s)', async (partitionKey) => {
    await store.ingest([inboxRow({ partitionKey })]);
    const message = await only();
    await db.expireInboxLeases();
    expect(await succeed(message)).toBeUndefined();
    expect((await failOf(message)).lost).toEqual([message.rowId]);
    expect((await store.release([message])).lost).toEqual([message.rowId]);
    const next = await only();
    expect(next.attempt).toBe(2);
    // The old token is worth nothing while the new one runs, either.
    expect(await succeed(message)).toBeUndefined();
    expect((await failOf(message)).lost).toEqual([message.rowId]);
    expect((await store.release([message])).lost).toEqual([message.rowId]);
    expect(await succeed(next)).toEqual([]);
  });
});

describe('a message that kills its function is found, and takes nobody with it', () => {
  test.each([null, 'k'])('those whose lease ran out come alone, lowest first (key %s)', async (key) => {
    const rows = [1, 2, 3].map((n) => inboxRow({ partitionKey: key && `${key}${n}` }));
    await store.ingest(rows);
    await store.claim(claimRequest({ limit: 2 }));
    await db.expireInboxLeases();
    for (const expected of rows.slice(0, 2)) {
      const claim = await store.claim(claimRequest());
      expect(ids(claim.messages)).toEqual([expected.externalMessageId]);
      expect(claim.alone).toBe(true);
      await succeed(claim.messages[0] as ClaimedInboxMessage);
    }
    const last = await store.claim(claimRequest());
    expect(ids(last.messages)).toEqual([rows[2]?.externalMessageId]);
    expect(last.alone).toBe(false);
  });

  test.each([null, 'k'])(
    'released unbegun it is still to be claimed alone (key %s)',
    async (partitionKey) => {
      await store.ingest([inboxRow({ partitionKey })]);
      await only();
      await db.expireInboxLeases();
      const alone = await only();
      await store.ingest([inboxRow(), inboxRow({ partitionKey: 'other' })]);
      await store.release([alone]);
      const claims = [await store.claim(claimRequest()), await store.claim(claimRequest())];
      const withIt = claims.find((claim) => ids(claim.messages).includes(alone.externalMessageId));
      expect(withIt?.alone).toBe(true);
      expect(withIt?.messages).toHaveLength(1);
    },
  );

  test.each([null, 'k'])(
    'it ends after its retries, with a reason that names the lost leases (key %s)',
    async (key) => {
      const killer = inboxRow({ maxRetries: 2, partitionKey: key });
      await store.ingest([killer, inboxRow({ partitionKey: key, messageType: 'next' })]);
      for (let attempt = 1; attempt <= 3; attempt++) {
        expect((await only()).attempt).toBe(attempt);
        await db.expireInboxLeases();
      }
      const claim = await store.claim(claimRequest({ onFailedKey: 'skip' }));
      expect(claim).toMatchObject({ messages: [], ended: 1, nextTypes: key === null ? [] : ['next'] });
      const [row] = await db.rows('inbox', { external_message_id: killer.externalMessageId });
      expect(row?.state).toBe(3);
      expect(row?.last_error).toContain('its lease ran out 3 times');
      expect((await store.claim(claimRequest({ messageType: 'next' }))).messages).toHaveLength(1);
    },
  );

  test('one without retries that shared its batch with a killer is tried once more, alone', async () => {
    await store.ingest([inboxRow({ maxRetries: 0 })]);
    await only();
    await db.expireInboxLeases();
    const again = await store.claim(claimRequest());
    expect(again).toMatchObject({ ended: 0, alone: true });
    await succeed(again.messages[0] as ClaimedInboxMessage);
  });

  test('it is not taken beside others that the same claim has in hand', async () => {
    await store.ingest([inboxRow({ partitionKey: 'k' })]);
    await only();
    await db.expireInboxLeases();
    await store.ingest([inboxRow()]);
    const claims = [await store.claim(claimRequest()), await store.claim(claimRequest())];
    expect(claims.map((claim) => claim.messages.length)).toEqual([1, 1]);
    expect(claims.filter((claim) => claim.alone)).toHaveLength(1);
  });
});

describe('the direct consumer’s receipt', () => {
  test('is given once per consumer, source and id, and not where the transaction rolls back', async () => {
    const receipt = { consumer: 'a', source: 'bc', externalMessageId: 'd' };
    const lost = await store.begin(limits);
    expect(await store.receive(lost, receipt)).toBe(true);
    await lost.rollback();
    const first = await store.begin(limits);
    expect(await store.receive(first, receipt)).toBe(true);
    const second = await store.begin(limits);
    const waiting = store.receive(second, receipt);
    await first.commit();
    expect(await waiting).toBe(false);
    expect(await store.receive(second, { ...receipt, consumer: 'ab', source: 'c' })).toBe(true);
    await second.rollback();
  });
});
