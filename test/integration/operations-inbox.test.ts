import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { reread } from '../../shared/inbox/reread.ts';
import { UNREADABLE_TYPE } from '../../shared/message/envelope/names.ts';
import type { Responses } from '../../shared/operations/responses.ts';
import type { ClaimedInboxMessage, NewInboxRow } from '../../shared/store/inbox-store.ts';
import { engine } from '../support/engine/engine.ts';
import { operatingOn } from '../support/engine/operations.ts';
import { secondsFromNow } from '../support/engine/values.ts';
import { claimRequest, inboxRow, limits } from '../support/inbox-rows.ts';

const db = await engine.createDatabase();
afterAll(() => db.drop());
beforeEach(() => db.clear('inbox', 'keys', 'inboxLanes'));

const { ask, row } = operatingOn(db);

const why = { reason: 'not ours', by: 'Ada' };

async function ingest(...rows: Partial<NewInboxRow>[]): Promise<string[]> {
  const full = rows.map(inboxRow);
  await db.inbox.ingest(full);
  const stored = await db.rows('inbox', {}, { columns: ['id', 'consumer', 'external_message_id'] });
  const ids = new Map(stored.map((each) => [`${each.consumer} ${each.external_message_id}`, each.id]));
  return full.map((row) => String(ids.get(`${row.consumer} ${row.externalMessageId}`)));
}

async function claim(messageType = 'order.placed'): Promise<readonly ClaimedInboxMessage[]> {
  return (await db.inbox.claim(claimRequest({ messageType }))).messages;
}

async function fail(message: ClaimedInboxMessage, onFailedKey: 'block' | 'skip'): Promise<void> {
  const failure = { message, reason: 'it threw', retryInSeconds: undefined };
  await db.inbox.markFailed([failure], { onFailedKey });
}

async function finish(message: ClaimedInboxMessage): Promise<boolean> {
  const transaction = await db.inbox.begin(limits);
  const marked = await db.inbox.markProcessed(transaction, message);
  await (marked ? transaction.commit() : transaction.rollback());
  return marked !== undefined;
}

async function fails(ids: readonly string[], onFailedKey: 'block' | 'skip'): Promise<void> {
  for (const message of await claim()) if (ids.includes(message.rowId)) await fail(message, onFailedKey);
}

const state = async (id = ''): Promise<unknown> => (await db.rows('inbox', { id }))[0]?.state;

describe('requeue', () => {
  it('gives an unkeyed Failed message its attempts anew', async () => {
    const [id = ''] = await ingest({});
    await fails([id], 'block');
    expect((await ask({ command: 'requeue', ids: [id] })).changed).toEqual([{ id, box: 'inbox' }]);
    expect((await claim()).map(({ rowId, attempt }) => ({ rowId, attempt }))).toEqual([
      { rowId: id, attempt: 1 },
    ]);
  });

  it('opens a blocked key again, the Failed message first', async () => {
    const [first = '', second = ''] = await ingest({ partitionKey: 'k' }, { partitionKey: 'k' });
    await fails([first], 'block');
    expect(await claim()).toEqual([]);
    await ask({ command: 'requeue', ids: [first] });
    const [head] = await claim();
    expect(head?.rowId).toBe(first);
    if (head) await finish(head);
    expect((await claim()).map(({ rowId }) => rowId)).toEqual([second]);
  });

  it('lets an earlier message wait while a later one of its key runs: never two of a key at once', async () => {
    const [first = '', second = ''] = await ingest({ partitionKey: 'k' }, { partitionKey: 'k' });
    await fails([first], 'skip');
    const [running] = await claim();
    expect(running?.rowId).toBe(second);
    await ask({ command: 'requeue', ids: [first] });
    expect(await claim()).toEqual([]);
    if (running) expect(await finish(running)).toBe(true);
    expect((await claim()).map(({ rowId }) => rowId)).toEqual([first]);
  });

  it('makes the key again where the Failed message was the last of it', async () => {
    const [only = ''] = await ingest({ partitionKey: 'k' });
    await fails([only], 'skip');
    expect(await db.count('keys')).toBe(0);
    await ask({ command: 'requeue', ids: [only] });
    expect((await claim()).map(({ rowId }) => rowId)).toEqual([only]);
  });

  it('has an unreadable record read again by ingest, with the mapping as it is then', async () => {
    const [id = ''] = await ingest({
      messageType: UNREADABLE_TYPE,
      payload: '<order id="7"/>',
      failedReason: 'The record could not be read: its body is no JSON object',
    });
    await ask({ command: 'requeue', ids: [id] });
    const types = await reread({
      store: db.inbox,
      consumer: '',
      source: 'shop',
      leaseMs: 10_000,
      mapping: () => ({ id: 'order-7', messageType: 'order.placed', payload: { id: 7 } }),
    });
    expect(types).toEqual(['order.placed']);
    expect(await state(id)).toBe(2);
    expect((await claim())[0]).toMatchObject({ externalMessageId: 'order-7', payload: '{"id":7}' });
  });

  it('takes a whole type of one consumer, and leaves the others', async () => {
    const ids = await ingest({ failedReason: 'x' }, { failedReason: 'x' });
    const [other] = await ingest({ consumer: 'emails', failedReason: 'x' });
    const all = { command: 'requeue', all: true, messageType: 'order.placed' } as const;
    const { changed } = await ask(all);
    expect(changed.map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect(await state(other)).toBe(3);
    expect((await ask({ ...all, consumer: 'emails' })).changed).toHaveLength(1);
  });
});

describe('discard', () => {
  it('refuses while a handler has the message, and is not undone by one whose lease ran out', async () => {
    const [id = ''] = await ingest({});
    const [message] = await claim();
    const refused = await ask({ command: 'discard', ids: [id], ...why });
    expect(refused.refused).toEqual([{ id, reason: expect.stringContaining('a handler has it') }]);
    await db.update('inbox', { locked_until_utc: secondsFromNow(-1) });
    expect((await ask({ command: 'discard', ids: [id], ...why })).changed).toHaveLength(1);
    if (message) expect(await finish(message)).toBe(false);
    expect(await state(id)).toBe(4);
  });

  it('lets the key go on: behind a blocking message, and where a waiting head was taken out', async () => {
    const [first = '', second = '', third = ''] = await ingest(
      { partitionKey: 'k' },
      { partitionKey: 'k' },
      { partitionKey: 'k' },
    );
    await fails([first], 'block');
    await ask({ command: 'discard', ids: [first], ...why });
    const [head] = await claim();
    expect(head?.rowId).toBe(second);
    if (head) {
      const failure = { message: head, reason: 'x', retryInSeconds: 3600 };
      await db.inbox.markFailed([failure], { onFailedKey: 'block' });
    }
    expect(await claim()).toEqual([]);
    await ask({ command: 'discard', ids: [second], ...why });
    expect((await claim()).map(({ rowId }) => rowId)).toEqual([third]);
  });

  it('forgets the key with its last message', async () => {
    const ids = await ingest({ partitionKey: 'k' }, { partitionKey: 'k' });
    expect((await ask({ command: 'discard', ids, ...why })).changed).toHaveLength(2);
    expect(await db.count('keys')).toBe(0);
  });

  it('does not wait for ever for a key in a frozen hand, and takes the others all the same', async () => {
    const [stuck = '', free = ''] = await ingest({ partitionKey: 'k' }, { partitionKey: 'l' });
    const frozen = await db.hold('keys', { partition_key: 'k' });
    const deciding = ask({ command: 'discard', ids: [stuck, free], ...why });
    const { changed, refused } = await deciding.finally(() => frozen.release());
    expect(changed.map(({ id }) => id)).toEqual([free]);
    expect(refused).toEqual([{ id: stuck, reason: expect.stringContaining('try again') }]);
  }, 20_000);
});

describe('pause', () => {
  it('stops a type, and resume lets it go on', async () => {
    await ingest({});
    await ask({ command: 'pause', messageType: 'order.placed', by: 'Ada', reason: 'bad deploy' });
    expect(await claim()).toEqual([]);
    expect((await ask({ command: 'status' })).lanes[0]).toMatchObject({
      lane: { box: 'inbox', consumer: '', messageType: 'order.placed' },
      state: 'paused',
      pause: { by: 'Ada', reason: 'bad deploy', until: null },
    });
    await ask({ command: 'resume', messageType: 'order.placed' });
    expect(await claim()).toHaveLength(1);
  });
});

describe('failed and show', () => {
  it('pages through Failed messages without payloads, one strange row hiding none', async () => {
    await ingest(
      ...Array.from({ length: 5 }, (_, n) => ({ failedReason: `reason ${n}`, payload: `{"secret":${n}}` })),
    );
    const { inbox } = db.tables;
    await db.sql({
      postgres: `UPDATE ${inbox} SET created_at_utc = 'infinity', headers = '[1]', last_error = repeat('x', 5000) WHERE last_error = 'reason 2'`,
      sqlserver: `UPDATE ${inbox} SET [CreatedAtUtc] = '9999-12-31T23:59:59.9999999+00:00', [Headers] = N'[1]', [LastError] = REPLICATE(CONVERT(NVARCHAR(MAX), N'x'), 5000) WHERE [LastError] = N'reason 2'`,
    });
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page: Responses['failed'] = await ask({
        command: 'failed',
        box: 'inbox',
        limit: 2,
        after,
      });
      expect(JSON.stringify(page)).not.toContain('secret');
      for (const message of page.messages) {
        seen.push(message.id);
        expect(message.lastError?.length).toBeLessThanOrEqual(500);
      }
      after = page.next;
    } while (after !== null);
    expect(new Set(seen).size).toBe(5);
  });

  it('shows headers as JSON, and as their text where they are nested too deep for an answer', async () => {
    const id = await row({ headers: '{"tenant":"a","n":1}' });
    const text = `{"a": ${'['.repeat(6000)}${']'.repeat(6000)}}`;
    const deep = await row({ headers: text });
    const headers = async (of: string) => {
      const answer = await ask({ command: 'show', id: of });
      return JSON.parse(JSON.stringify(answer.messages[0])).headers as unknown;
    };
    expect(await headers(id)).toEqual({ tenant: 'a', n: 1 });
    expect(await headers(deep)).toBe(text);
  });

  it('shows a message by its row or by its sender, the payload only where it is asked for', async () => {
    const [id = ''] = await ingest({ externalMessageId: 'x 1', payload: '{"secret":1}' });
    const [copy] = await ingest({ externalMessageId: 'x 1', consumer: 'emails' });
    await db.inbox.claim(claimRequest({ consumer: 'emails', messageType: 'other' }));
    const byId = await ask({ command: 'show', id });
    expect(byId.messages).toHaveLength(1);
    expect(byId.messages[0]).toMatchObject({ box: 'inbox', state: 'Pending', payloadBytes: 12 });
    expect(JSON.stringify(byId)).not.toContain('secret');
    const shown = await ask({ command: 'show', id, payload: true });
    expect(shown.messages[0]?.payload).toBe('{"secret":1}');
    const sent = { command: 'show', source: 'shop', externalMessageId: 'x 1' } as const;
    expect((await ask(sent)).messages.map((message) => message.id)).toEqual([id, copy]);
    expect((await ask({ ...sent, consumer: 'emails' })).messages.map((message) => message.id)).toEqual([
      copy,
    ]);
    expect((await ask({ ...sent, externalMessageId: 'X 1' })).messages).toEqual([]);
  });
});
