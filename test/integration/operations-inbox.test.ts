import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { reread } from '../../shared/inbox/reread.ts';
import { UNREADABLE_TYPE } from '../../shared/message/envelope/names.ts';
import type { ClaimedInboxMessage, NewInboxRow } from '../../shared/store/inbox-store.ts';
import { discardInbox, requeueInbox } from '../../shared/store/postgres/sql/operations-inbox.ts';
import { claimRequest, inboxRow, limits } from '../support/inbox.ts';
import { createOperations, type OperationsFixture } from '../support/operations.ts';

let t: OperationsFixture;
beforeAll(async () => {
  t = await createOperations();
});
afterAll(() => t.drop());
beforeEach(async () => {
  await t.pool.query('TRUNCATE inbox_messages, inbox_keys, inbox_lanes');
});

const why = { reason: 'not ours', by: 'Ada' };

async function ingest(...rows: Partial<NewInboxRow>[]): Promise<string[]> {
  const full = rows.map(inboxRow);
  await t.store.ingest(full);
  const stored = await t.rows('SELECT id, consumer, external_message_id FROM inbox_messages');
  const ids = new Map(stored.map((row) => [`${row['consumer']} ${row['external_message_id']}`, row['id']]));
  return full.map((row) => String(ids.get(`${row.consumer} ${row.externalMessageId}`)));
}

async function claim(messageType = 'order.placed'): Promise<readonly ClaimedInboxMessage[]> {
  return (await t.store.claim(claimRequest({ messageType }))).messages;
}

async function fail(message: ClaimedInboxMessage, onFailedKey: 'block' | 'skip'): Promise<void> {
  const failure = { message, reason: 'it threw', retryInSeconds: undefined };
  await t.store.markFailed([failure], { onFailedKey });
}

async function finish(message: ClaimedInboxMessage): Promise<boolean> {
  const transaction = await t.store.begin(limits);
  const marked = await t.store.markProcessed(transaction, message);
  await (marked ? transaction.commit() : transaction.rollback());
  return marked !== undefined;
}

async function fails(ids: readonly string[], onFailedKey: 'block' | 'skip'): Promise<void> {
  for (const message of await claim()) if (ids.includes(message.rowId)) await fail(message, onFailedKey);
}

const state = async (id: string | undefined): Promise<unknown> =>
  (await t.rows('SELECT state FROM inbox_messages WHERE id = $1', [id]))[0]?.['state'];

describe('requeue', () => {
  it('gives an unkeyed Failed message its attempts anew', async () => {
    const [id = ''] = await ingest({});
    await fails([id], 'block');
    expect((await t.ask({ command: 'requeue', ids: [id] })).changed).toEqual([{ id, box: 'inbox' }]);
    expect((await claim()).map(({ rowId, attempt }) => ({ rowId, attempt }))).toEqual([
      { rowId: id, attempt: 1 },
    ]);
  });

  it('opens a blocked key again, the Failed message first', async () => {
    const [first = '', second = ''] = await ingest({ partitionKey: 'k' }, { partitionKey: 'k' });
    await fails([first], 'block');
    expect(await claim()).toEqual([]);
    await t.ask({ command: 'requeue', ids: [first] });
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
    await t.ask({ command: 'requeue', ids: [first] });
    expect(await claim()).toEqual([]);
    if (running) expect(await finish(running)).toBe(true);
    expect((await claim()).map(({ rowId }) => rowId)).toEqual([first]);
  });

  it('makes the key again where the Failed message was the last of it', async () => {
    const [only = ''] = await ingest({ partitionKey: 'k' });
    await fails([only], 'skip');
    expect(await t.rows('SELECT 1 FROM inbox_keys')).toEqual([]);
    await t.ask({ command: 'requeue', ids: [only] });
    expect((await claim()).map(({ rowId }) => rowId)).toEqual([only]);
  });

  it('has an unreadable record read again by ingest, with the mapping as it is then', async () => {
    const [id = ''] = await ingest({
      messageType: UNREADABLE_TYPE,
      payload: '<order id="7"/>',
      failedReason: 'The record could not be read: its body is no JSON object',
    });
    await t.ask({ command: 'requeue', ids: [id] });
    const types = await reread({
      store: t.store,
      consumer: '',
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
    const { changed } = await t.ask(all);
    expect(changed.map(({ id }) => id).sort()).toEqual([...ids].sort());
    expect(await state(other)).toBe(3);
    expect((await t.ask({ ...all, consumer: 'emails' })).changed).toHaveLength(1);
  });
});

describe('discard', () => {
  it('refuses while a handler has the message, and is not undone by one whose lease ran out', async () => {
    const [id = ''] = await ingest({});
    const [message] = await claim();
    const refused = await t.ask({ command: 'discard', ids: [id], ...why });
    expect(refused.refused).toEqual([{ id, reason: expect.stringContaining('a handler has it') }]);
    await t.pool.query("UPDATE inbox_messages SET locked_until_utc = now() - interval '1 second'");
    expect((await t.ask({ command: 'discard', ids: [id], ...why })).changed).toHaveLength(1);
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
    await t.ask({ command: 'discard', ids: [first], ...why });
    const [head] = await claim();
    expect(head?.rowId).toBe(second);
    if (head) {
      const failure = { message: head, reason: 'x', retryInSeconds: 3600 };
      await t.store.markFailed([failure], { onFailedKey: 'block' });
    }
    expect(await claim()).toEqual([]);
    await t.ask({ command: 'discard', ids: [second], ...why });
    expect((await claim()).map(({ rowId }) => rowId)).toEqual([third]);
  });

  it('forgets the key with its last message', async () => {
    const ids = await ingest({ partitionKey: 'k' }, { partitionKey: 'k' });
    expect((await t.ask({ command: 'discard', ids, ...why })).changed).toHaveLength(2);
    expect(await t.rows('SELECT 1 FROM inbox_keys')).toEqual([]);
  });

  it('does not wait for ever for a key in a frozen hand, and takes the others all the same', async () => {
    const [stuck = '', free = ''] = await ingest({ partitionKey: 'k' }, { partitionKey: 'l' });
    const client = await t.pool.connect();
    await client.query("BEGIN; SELECT 1 FROM inbox_keys WHERE partition_key = 'k' FOR UPDATE");
    const deciding = t.ask({ command: 'discard', ids: [stuck, free], ...why });
    const { changed, refused } = await deciding.finally(() => client.release(true));
    expect(changed.map(({ id }) => id)).toEqual([free]);
    expect(refused).toEqual([{ id: stuck, reason: expect.stringContaining('try again') }]);
  }, 20_000);
});

describe('a message that changed between the look and the write', () => {
  it('is left as it is: each statement names the state that it expects', async () => {
    const [running = '', due = ''] = await ingest({}, { messageType: 'other' });
    await claim();
    const before = await t.rows('SELECT * FROM inbox_messages ORDER BY sequence');
    await t.pool.query(discardInbox(t.tables), [[running], 'x']);
    await t.pool.query(requeueInbox(t.tables), [[running, due]]);
    expect(await t.rows('SELECT * FROM inbox_messages ORDER BY sequence')).toEqual(before);
  });
});

describe('pause', () => {
  it('stops a type, and resume lets it go on', async () => {
    await ingest({});
    await t.ask({ command: 'pause', messageType: 'order.placed', by: 'Ada', reason: 'bad deploy' });
    expect(await claim()).toEqual([]);
    expect((await t.ask({ command: 'status' })).lanes[0]).toMatchObject({
      lane: { box: 'inbox', consumer: '', messageType: 'order.placed' },
      state: 'paused',
      pause: { by: 'Ada', reason: 'bad deploy', until: null },
    });
    await t.ask({ command: 'resume', messageType: 'order.placed' });
    expect(await claim()).toHaveLength(1);
  });
});

describe('failed and show', () => {
  it('pages through Failed messages without payloads, one strange row hiding none', async () => {
    await ingest(
      ...Array.from({ length: 5 }, (_, n) => ({ failedReason: `reason ${n}`, payload: `{"secret":${n}}` })),
    );
    await t.pool.query(
      "UPDATE inbox_messages SET created_at_utc = 'infinity', headers = '[1]', last_error = repeat('x', 5000) WHERE last_error = 'reason 2'",
    );
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof t.ask<'failed'>>> = await t.ask({
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
    const id = await t.row({ headers: '{"tenant":"a","n":1}' });
    const text = `{"a": ${'['.repeat(6000)}${']'.repeat(6000)}}`;
    const deep = await t.row({ headers: text });
    const headers = async (of: string) => {
      const answer = await t.ask({ command: 'show', id: of });
      return JSON.parse(JSON.stringify(answer.messages[0])).headers as unknown;
    };
    expect(await headers(id)).toEqual({ tenant: 'a', n: 1 });
    expect(await headers(deep)).toBe(text);
  });

  it('shows a message by its row or by its sender, the payload only where it is asked for', async () => {
    const [id = ''] = await ingest({ externalMessageId: 'x 1', payload: '{"secret":1}' });
    const [copy] = await ingest({ externalMessageId: 'x 1', consumer: 'emails' });
    await t.store.claim(claimRequest({ consumer: 'emails', messageType: 'other' }));
    const byId = await t.ask({ command: 'show', id });
    expect(byId.messages).toHaveLength(1);
    expect(byId.messages[0]).toMatchObject({ box: 'inbox', state: 'Pending', payloadBytes: 12 });
    expect(JSON.stringify(byId)).not.toContain('secret');
    const shown = await t.ask({ command: 'show', id, payload: true });
    expect(shown.messages[0]?.payload).toBe('{"secret":1}');
    const sent = { command: 'show', source: 'shop', externalMessageId: 'x 1' } as const;
    expect((await t.ask(sent)).messages.map((message) => message.id)).toEqual([id, copy]);
    expect((await t.ask({ ...sent, consumer: 'emails' })).messages.map((message) => message.id)).toEqual([
      copy,
    ]);
    expect((await t.ask({ ...sent, externalMessageId: 'X 1' })).messages).toEqual([]);
  });
});
