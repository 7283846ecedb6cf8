import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../shared/message/errors.ts';
import { indexName, postgresNames } from '../../shared/store/postgres/names.ts';

describe('names of tables', () => {
  it('are quoted and qualified, whatever they look like', () => {
    const names = postgresNames({ schema: 'My "app"', outboxTable: "o'brien", inboxTable: 'Inbox' });
    expect(names.outbox).toBe(`"My ""app"""."o'brien"`);
    expect(names.outboxArchive).toBe(`"My ""app"""."o'brien_archive"`);
    expect(names.leases).toBe('"My ""app"""."outbox_leases"');
    expect(names.placeholders['outbox_sequence_literal']).toContain("o''brien");
  });

  it('that PostgreSQL would cut or misread are refused, with the option and its value', () => {
    expect(() => postgresNames({ schema: '' })).toThrow(ConfigurationError);
    expect(() => postgresNames({ outboxTable: 'x'.repeat(64) })).toThrow(/outboxTable .*64 bytes/);
    expect(() => postgresNames({ outboxTable: 'ä'.repeat(32) })).toThrow(/64 bytes/);
    expect(() => postgresNames({ inboxTable: 'a\0b' })).toThrow(/inboxTable/);
    expect(() => postgresNames({ inboxTable: '{{outbox}}' })).toThrow(/inboxTable/);
    expect(() => postgresNames({ outboxTable: 't', inboxTable: 't' })).toThrow(/"t"/);
  });

  it('that Relaybox itself gives to something in the schema are refused', () => {
    for (const outboxTable of [
      'outbox_leases',
      'inbox_receipts',
      'relaybox_backfill',
      'inbox_messages_relaybox_seq',
      'ix_inbox_messages_ready',
    ]) {
      expect(() => postgresNames({ outboxTable })).toThrow(ConfigurationError);
      expect(() => postgresNames({ outboxTable })).toThrow(`outboxTable is "${outboxTable}"`);
    }
    expect(() => postgresNames({ inboxTable: 'outbox_messages_archive' })).toThrow(/inboxTable/);
    expect(postgresNames({ inboxTable: 'inbox_messages_archive' }).inbox).toContain('inbox_messages_archive');
  });

  it('that would end a quoted body of the migrations are refused; a dollar alone is not', () => {
    for (const tag of ['$relaybox$', 'a$$b', '$body0$']) {
      expect(() => postgresNames({ inboxTable: tag })).toThrow(/\$…\$/);
      expect(() => postgresNames({ schema: tag })).toThrow(ConfigurationError);
    }
    expect(postgresNames({ inboxTable: "$&$'$`" }).inbox).toContain('$&');
  });

  it('of indexes are cut to 63 bytes and stay different', () => {
    const [one, two] = ['a', 'b'].map((end) => `${'ü'.repeat(31)}${end}`);
    const kinds = ['ready', 'waiting', 'blocking'];
    const cut = [one, two].flatMap((table) => kinds.map((kind) => indexName(table ?? '', kind)));
    expect(new Set(cut).size).toBe(6);
    for (const name of cut) {
      expect(Buffer.byteLength(name)).toBeLessThanOrEqual(63);
      expect(name.isWellFormed()).toBe(true);
    }
    expect(indexName('outbox_messages', 'ready')).toBe('ix_outbox_messages_ready');
  });
});
