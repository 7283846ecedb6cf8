import { describe, expect, it } from 'vitest';
import { decodeCursor, encodeCursor } from '../../shared/operations/cursor.ts';
import { RequestRefused } from '../../shared/operations/errors.ts';
import { parseRequest } from '../../shared/operations/parse.ts';
import { titled } from '../support/titled.ts';

const id = '0194b6d0-0000-7000-8000-000000000001';

describe('a request that is not as it must be', () => {
  const wrong: [unknown, RegExp][] = [
    [undefined, /one of status, failed, show, requeue, discard, pause, resume, purge, doctor, health/],
    [[], /must be an object/],
    [{ command: 'drop' }, /unknown command "drop"; it must be one of status, failed/],
    [{ command: 'status', verbose: true }, /unknown field verbose; it takes none/],
    // A lost dryRun would do harm.
    [{ command: 'requeue', ids: [id], dryrun: true }, /unknown field dryrun; it takes .*dryRun/],
    [{ command: 'requeue', ids: [id], dryRun: 'yes' }, /dryRun must be true or false/],
    [{ command: 'requeue' }, /ids must be given, or else all with a lane/],
    [{ command: 'requeue', all: true }, /lane must be named/],
    [{ command: 'requeue', all: true, ids: [id], destination: 'x' }, /ids must be given, or else all/],
    [{ command: 'requeue', ids: ['1'] }, /a list of UUIDs/],
    [{ command: 'requeue', ids: [] }, /a list of 1 to 1000 UUIDs/],
    [{ command: 'discard', ids: [id], by: 'Ada' }, /reason must be given/],
    [{ command: 'discard', ids: [id], reason: 'x' }, /by must be given/],
    [{ command: 'pause', destination: 'a', messageType: 'b', by: 'x', reason: 'y' }, /not both/],
    [{ command: 'pause', destination: 'a', by: 'x', reason: 'y', seconds: 0 }, /seconds must be a whole/],
    [{ command: 'pause', destination: 'a\0', by: 'x', reason: 'y' }, /without NUL/],
    [{ command: 'failed' }, /box must be one of outbox, inbox/],
    [{ command: 'failed', box: 'inbox', destination: 'a' }, /box must be one of outbox/],
    [{ command: 'failed', box: 'outbox', limit: 1e6 }, /from 1 to 1000/],
    [{ command: 'show' }, /id must be given, or else source and externalMessageId/],
    [{ command: 'purge', from: 'leases' }, /from must be one of outbox, inbox, receipts/],
    [{ command: 'purge', from: 'outbox', olderThanDays: -1 }, /olderThanDays must be a whole number/],
  ];
  const cases = wrong.map(([request, message]) => [titled(request), request, message] as const);
  it.each(cases)('%s is refused, saying why', (_, request, message) => {
    expect(() => parseRequest(request)).toThrow(RequestRefused);
    expect(() => parseRequest(request)).toThrow(message);
  });
});

it('fills in what is not given, and takes null for not given', () => {
  expect(parseRequest({ command: 'requeue', ids: [id.toUpperCase(), id], destination: null })).toEqual({
    command: 'requeue',
    select: { ids: [id] },
    dryRun: false,
    waitSeconds: 35,
  });
  expect(parseRequest({ command: 'purge', from: 'inbox' })).toMatchObject({ olderThanDays: 30 });
});

it('a cursor is refused where it is not of this kind of answer', () => {
  expect(decodeCursor(encodeCursor(['a', 'ä\u0000']), 2)).toEqual(['a', 'ä\u0000']);
  for (const cursor of ['', 'x', encodeCursor(['a']), Buffer.from('{}').toString('base64url')]) {
    expect(() => decodeCursor(cursor, 2)).toThrow(RequestRefused);
  }
});
