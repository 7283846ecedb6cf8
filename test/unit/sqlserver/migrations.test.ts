import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../shared/message/errors.ts';
import { stepKey } from '../../../shared/store/migration/steps.ts';
import { migrate } from '../../../shared/store/sqlserver/migrate.ts';
import { migrationFiles } from '../../../shared/store/sqlserver/migration-files.ts';
import { migrationSql } from '../../../shared/store/sqlserver/migration-sql.ts';
import { migrationSteps } from '../../../shared/store/sqlserver/migration-steps.ts';
import { indexName, sqlServerNames } from '../../../shared/store/sqlserver/names.ts';
import { bare, names } from './statements.ts';

const steps = migrationSteps(names);
const printed = migrationSql(names);
/** The same with the names that nobody chose, which are easier to look for. */
const usual = migrationSql(sqlServerNames());

describe('migrations for SQL Server', () => {
  it('render with any names, quoted where they are names and escaped where they are texts', () => {
    expect(printed).not.toMatch(/\{\{|\}\}|undefined/);
    expect(printed).toContain(`CREATE TABLE [my "app"].[o'brien] (`);
    expect(printed).toContain(`OBJECT_ID(N'[my "app"].[o''brien]')`);
    for (const batch of printed.split(/^GO$/m)) {
      const code = bare(batch);
      expect(code.split('(').length, batch).toBe(code.split(')').length);
      expect(code).not.toMatch(/['[\]](?!['[\]])[^\s(),;.='[\]]*'/);
    }
  });

  it('are printed in batches, with the options that their indexes ask for set before anything', () => {
    const batches = printed.split(/^GO\n?/m);
    expect(batches.length).toBeGreaterThan(steps.length);
    for (const option of ['QUOTED_IDENTIFIER', 'ANSI_NULLS', 'ANSI_PADDING', 'ARITHABORT']) {
      expect(batches[0]).toContain(option);
    }
    expect(batches[0]).toContain('NUMERIC_ROUNDABORT OFF');
    for (const batch of batches.slice(1)) {
      const code = bare(batch);
      expect(code.match(/BEGIN TRANSACTION/g)?.length, batch).toBe(code.match(/COMMIT TRANSACTION/g)?.length);
    }
  });

  it('record each step in its own batch, and each version at its end', () => {
    for (const step of steps) expect(printed).toContain(`[Step] = N'${step.name}'`);
    for (const [index] of migrationFiles.entries()) {
      expect(printed).toContain(`[Version] = ${index + 1} AND [Step] = N'complete'`);
    }
    expect(new Set(steps.map(stepKey)).size).toBe(steps.length);
  });

  it('printed, call a version complete only where none of its steps is missing: a tool may go on after an error', () => {
    const ends = printed.split(/^GO$/m).filter((batch) => batch.includes("[Step] = N'complete'"));
    expect(ends).toHaveLength(migrationFiles.length);
    for (const [index, end] of ends.entries()) {
      const version = steps.filter((step) => step.version === index + 1);
      expect(end.trim()).toMatch(/^IF NOT EXISTS \(SELECT 1 FROM \(VALUES /);
      for (const { name, unlessSeedIdentity } of version) {
        if (unlessSeedIdentity) expect(end).not.toContain(`(N'${name}')`);
        else expect(end).toContain(`(N'${name}')`);
      }
    }
  });

  it('wait a short time only for what locks a whole table, and for an index built ONLINE as long as it takes', async () => {
    for (const [edition, index] of [
      [2, 2_000],
      [3, -1],
    ] as const) {
      const batches: string[] = [];
      const row = { database: 'app', level: 150, edition, got: 0, there: 0, rows: 0 };
      const client = {
        query: async (text: string) => {
          const rows = text.includes('sys.indexes') ? [] : [row];
          return { rows, sets: [rows] };
        },
        batch: async (text: string) => void batches.push(text),
        release: async () => undefined,
      };
      await migrate({ connect: async () => client }, names);
      const limits = (mode: string) =>
        steps
          .filter((step) => step.mode === mode)
          .map(({ name }) => {
            const batch = batches.find((text) => text.includes(`[Step] = N'${name}'`));
            return Number(/SET LOCK_TIMEOUT (-?\d+)/.exec(batch ?? '')?.[1]);
          });
      expect(new Set(limits('transaction'))).toEqual(new Set([2_000]));
      expect(new Set(limits('batches'))).toEqual(new Set([-1]));
      expect(new Set(limits('index'))).toEqual(new Set([index]));
    }
  });

  it('can be run again: what makes something looks first whether it is there', () => {
    for (const { name, text } of steps) {
      const code = bare(text);
      const makes = code.match(/\b(?:CREATE|ADD) /g)?.length ?? 0;
      const looks = code.match(/\bIF (?:OBJECT_ID|COL_LENGTH|INDEXPROPERTY|NOT EXISTS)/g)?.length ?? 0;
      // The clustered index of a new table is made with it, under one look.
      const together = code.match(/CREATE CLUSTERED INDEX/g)?.length ?? 0;
      expect(looks, name).toBeGreaterThanOrEqual(makes - together);
    }
  });

  it('ask nothing of the sessions that insert into the outbox: no filtered index, no computed column on it', () => {
    const made = [...printed.matchAll(/CREATE (?:UNIQUE |CLUSTERED )*INDEX [^;]*;/g)].map(([text]) => text);
    const outbox = made.filter((text) => text.includes(` ON ${names.outbox} `));
    expect(outbox.length).toBeGreaterThanOrEqual(4);
    for (const text of outbox) expect(text).not.toMatch(/\bWHERE\b/);
    expect(usual).not.toMatch(/\[OutboxMessages\] ADD \[\w+\] AS/);
    expect(usual.match(/ADD \[\w+\] AS/g)?.length, 'the inbox has some').toBe(3);
  });

  it('rewrite no table of before: what is added is nullable and has its default later', () => {
    const added = [...usual.matchAll(/ALTER TABLE \[dbo\]\.\[\w+\] ADD (\[\w+\] [^;]*);/g)].map(
      (match) => match[1] ?? '',
    );
    expect(added.length).toBeGreaterThanOrEqual(10);
    for (const column of added) {
      if (/\] AS /.test(column)) expect(column).not.toContain('PERSISTED');
      else expect(column).toMatch(/^(?!.*(?:NOT NULL|IDENTITY)).* NULL$/);
    }
  });

  it('build indexes beside running writers only where the edition can', () => {
    const online = migrationSteps(names, { online: true })
      .map(({ text }) => text)
      .join('\n');
    expect(online).toContain('WITH (ONLINE = ON)');
    expect(online).not.toContain('ONLINE = OFF');
    expect(printed).not.toContain('ONLINE = ON)');
  });

  it('leave the seed’s identity alone until they are told otherwise', () => {
    expect(steps.filter(({ unlessSeedIdentity }) => unlessSeedIdentity).map(({ name }) => name)).toEqual([
      'inbox identity',
    ]);
    expect(printed).toContain('Leave it out where the inbox has a unique index (Source, ExternalMessageId)');
  });

  it('write old rows in batches too small for a table lock', () => {
    const batched = steps.filter(({ text }) => text.includes('WHILE'));
    expect(batched.length).toBe(3);
    for (const { text } of batched) {
      expect(text).toContain('@done + 1000');
      expect(text).toContain('WITH (ROWLOCK)');
    }
  });
});

describe('names of tables on SQL Server', () => {
  it('are bracketed and qualified, whatever they look like', () => {
    expect(names.outbox).toBe(`[my "app"].[o'brien]`);
    expect(names.leases).toBe('[my "app"].[OutboxLeases]');
    expect(sqlServerNames().inbox).toBe('[dbo].[InboxMessages]');
  });

  it('that would mean another thing are refused, with the option and its value', () => {
    expect(() => sqlServerNames({ schema: '' })).toThrow(ConfigurationError);
    expect(() => sqlServerNames({ outboxTable: 'dbo.OutboxMessages' })).toThrow(/outboxTable .*without dots/);
    expect(() => sqlServerNames({ outboxTable: '[OutboxMessages]' })).toThrow(/without dots and brackets/);
    expect(() => sqlServerNames({ inboxTable: 'x'.repeat(129) })).toThrow(/129 characters/);
    expect(() => sqlServerNames({ inboxTable: 'a\0b' })).toThrow(/inboxTable/);
    expect(() => sqlServerNames({ inboxTable: '{{outbox}}' })).toThrow(/inboxTable/);
    expect(() => sqlServerNames({ outboxTable: 'Messages', inboxTable: 'MESSAGES' })).toThrow(/"Messages"/);
  });

  it('of indexes are cut to 128 characters and stay different', () => {
    const cut = ['a', 'b'].flatMap((end) =>
      ['due', 'key'].map((kind) => indexName(`${'n'.repeat(127)}${end}`, kind)),
    );
    expect(new Set(cut).size).toBe(4);
    for (const name of cut) expect(name.length).toBeLessThanOrEqual(128);
  });
});
