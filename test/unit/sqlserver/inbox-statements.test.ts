import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { inboxStatements } from './inbox-statements.ts';
import { bare, MARK, names, type Sent } from './statements.ts';

// There is no SQL Server where these run: what is checked here is what can be read off a statement.

let statements: readonly Sent[] = [];
beforeAll(async () => {
  statements = await inboxStatements();
});

function of(by: string): Sent[] {
  const found = statements.filter((one) => one.by === by);
  expect(found.length, `statements of "${by}"`).toBeGreaterThan(0);
  return found;
}

/** What stands in the parentheses of each test for existence. */
function existenceTests(text: string): string[] {
  return [...text.matchAll(/EXISTS \(/g)].map((match) => {
    const from = match.index + match[0].length;
    let depth = 1;
    let at = from;
    for (; depth > 0 && at < text.length; at++) depth += text[at] === '(' ? 1 : text[at] === ')' ? -1 : 0;
    return text.slice(from, at - 1);
  });
}

const claimHint = 'WITH (UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK)';

describe('each statement of the inbox and of the operators’ commands on SQL Server', () => {
  it('is sent by a method that is called here', () => {
    const folder = new URL('../../../shared/store/sqlserver/sql/', import.meta.url);
    const sent = statements.map(({ text }) => text).join('\n');
    // Each file's statements are recognised by what only they say.
    for (const table of [
      'inbox',
      'keys',
      'inboxLanes',
      'receipts',
      'workers',
      'outbox',
      'leases',
      'lanes',
    ] as const) {
      expect(sent, table).toContain(names[table]);
    }
    expect(readdirSync(folder).filter((file) => /^(inbox|operations)-/.test(file)).length).toBeGreaterThan(
      10,
    );
    expect(new Set(statements.map(({ text }) => text)).size).toBeGreaterThanOrEqual(55);
  });

  it('binds every value: each placeholder has one, and none stands in the text', () => {
    for (const { by, text, values } of statements) {
      const used = new Set([...text.matchAll(/@p(\d+)\b/g)].map((match) => Number(match[1])));
      const unused = values.map((_, index) => index + 1).filter((place) => !used.has(place));
      expect(unused, `${by}: values that are not used\n${text}`).toEqual([]);
      expect(Math.max(0, ...used), `${by}: placeholders without a value`).toBeLessThanOrEqual(values.length);
      expect(text, by).not.toContain(MARK);
      expect(bare(text), `${by}: no placeholder of PostgreSQL's`).not.toMatch(/\$\d/);
    }
  });

  it('sends only what the driver has a type for; lists as one JSON text', () => {
    for (const { by, values } of statements) {
      for (const value of values) {
        const plain =
          value === null || Buffer.isBuffer(value) || ['string', 'number', 'boolean'].includes(typeof value);
        expect(plain, `${by}: ${typeof value}`).toBe(true);
      }
    }
  });

  it('declares each variable that it uses, and closes what it opens', () => {
    for (const { by, text } of statements) {
      const rest = bare(text);
      const used = new Set([...rest.matchAll(/(?<![@\w])@([A-Za-z]\w*)/g)].map((match) => match[1] ?? ''));
      for (const name of used) {
        if (/^p\d+$/.test(name) || ['Resource', 'LockMode', 'LockOwner', 'LockTimeout'].includes(name))
          continue;
        expect(rest, `${by}: @${name}`).toMatch(new RegExp(`DECLARE [^;]*@${name}\\b`, 's'));
      }
      const count = (pattern: RegExp): number => [...rest.matchAll(pattern)].length;
      expect(count(/\(/g), `${by}: parentheses`).toBe(count(/\)/g));
      const opened = count(/\bCASE\b/gi) + count(/\bBEGIN\b(?! TRANSACTION)/gi);
      expect(count(/\bEND\b/gi), `${by}: CASE and BEGIN\n${text}`).toBe(opened);
    }
  });

  it('names tables in brackets with their schema, and columns in brackets', () => {
    for (const { by, text } of statements) {
      expect(bare(text), by).not.toMatch(/\b(?:FROM|JOIN|UPDATE|INTO) (?:dbo|outbox|inbox)/i);
      expect(bare(text), `${by}: a column after an alias is in brackets`).not.toMatch(/\b[a-z]\d?\.[A-Za-z]/);
    }
  });

  it('steps over locked rows in what it claims, and never in a test for existence', () => {
    for (const { by, text } of statements) {
      for (const inside of existenceTests(text)) {
        // A key's head is looked for under the key's lock: see the rules in inbox-keys.ts.
        if (inside.includes('r.[KeyDigest]') && inside.includes('TOP (1) r.[Id]')) continue;
        expect(inside, by).not.toContain('READPAST');
      }
    }
    const claims = of('claim').filter(({ text }) =>
      /SET \[State\] = 1|SET \[LockToken\] = NEWID\(\)/.test(text),
    );
    expect(claims.length).toBeGreaterThanOrEqual(3);
    const [unkeyed, keys] = [
      claims.find(({ text }) => text.includes('[Doomed] AS [doomed]')),
      claims.find(({ text }) => text.startsWith('\nUPDATE k')),
    ];
    const locking = claimHint.slice(0, -1);
    expect(unkeyed?.text.split(locking).length, 'both parts of an unkeyed claim').toBe(3);
    expect(keys?.text.split(locking).length, 'both parts of the keys').toBe(3);
  });

  it('waits for what it is about to change: a key is locked before its rows', () => {
    const locking = 'WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)';
    for (const by of ['mark keyed', 'ingest', 'requeue', 'keys']) {
      const [first] = of(by).filter(({ text }) => text.includes(`${names.keys} AS k ${locking}`));
      expect(first, by).toBeDefined();
    }
    const mark = of('mark keyed')[0]?.text ?? '';
    expect(mark.indexOf(`${names.keys} AS k ${locking}`)).toBeLessThan(mark.indexOf('UPDATE i'));
    const ingest = of('ingest')[0]?.text ?? '';
    expect(ingest.indexOf(`INSERT INTO ${names.inbox}`)).toBeLessThan(
      ingest.indexOf(`INSERT INTO ${names.keys}`),
    );
  });

  it('finds what it changes by seeking, so that in a small table it waits for nobody else’s rows', () => {
    for (const { by, text } of statements) {
      for (const [join] of text.matchAll(/INNER LOOP JOIN [^\n]*? ON [iok]\.\[(?:Id|KeyDigest)\]/g)) {
        const changes = /UPDATE [iok] SET|DELETE [kt]/.test(text);
        if (changes) expect(join, by).toContain('FORCESEEK');
      }
    }
  });

  it('fences every settle by token and by the time of the statement', () => {
    for (const by of ['mark', 'mark keyed', 'fail', 'release']) {
      for (const { text } of of(by).filter((one) => one.text.includes('UPDATE i SET'))) {
        expect(text, by).toMatch(/i\.\[LockToken\] = /);
        expect(text, by).toContain(
          'i.[State] = 1 AND i.[LockedUntilUtc] > TODATETIMEOFFSET(SYSUTCDATETIME(), 0)',
        );
      }
    }
  });

  it('compares what identifies a message by its digest', () => {
    for (const { by, text } of statements) {
      // Texts compare under a collation: beside a digest they may stand, alone they may not.
      for (const [line] of text.matchAll(/[^\n]*\[ExternalMessageId\] = [^\n]*/g)) {
        const where = text.slice(
          Math.max(0, text.indexOf(line) - 400),
          text.indexOf(line) + line.length + 200,
        );
        expect(where, by).toContain('[Identity]');
      }
    }
  });

  it('answers one result set, so that nobody reads another one’s rows', () => {
    // The schema's check reads all of its sets.
    for (const { by, text } of statements.filter((one) => !one.text.includes('HAS_PERMS_BY_NAME'))) {
      const parts = bare(text)
        .split(/;|\bBEGIN\b|\bEND\b(?=\s*;|\s*$|\s+BEGIN)/)
        .map((part) => part.trim());
      const answering = parts.filter(
        (part) =>
          /^SELECT (?!@|TOP \(\d+\) @)/.test(part) || (/\bOUTPUT\b/.test(part) && !/\bINTO @/.test(part)),
      );
      expect(answering.length, `${by}\n${text}`).toBeLessThanOrEqual(1);
    }
  });

  it('removes ended rows one batch at a time, gives way in a deadlock, and one session does it', () => {
    for (const { text, values } of of('purge').filter((one) => one.text.includes('DELETE t'))) {
      expect(text).toContain('SET DEADLOCK_PRIORITY LOW');
      expect(text).toContain("@LockOwner = 'Transaction'");
      expect(text).toContain(claimHint.slice(0, -1));
      expect(Number(values[1])).toBeLessThanOrEqual(500);
    }
  });

  it('rounds no instant, which could be the last one that there is', () => {
    const converted = statements.flatMap(({ text }) => [...text.matchAll(/DATETIME(?:2|OFFSET)?\((\d)\)/g)]);
    expect(converted.length).toBeGreaterThan(10);
    for (const [whole, digits] of converted) expect(digits, whole).toBe('7');
  });

  it('takes no instant from JavaScript', () => {
    for (const { by, values } of statements) {
      for (const value of values) expect(value instanceof Date, by).toBe(false);
    }
    for (const file of readdirSync(new URL('../../../shared/store/sqlserver/sql/', import.meta.url))) {
      const source = readFileSync(
        new URL(`../../../shared/store/sqlserver/sql/${file}`, import.meta.url),
        'utf8',
      );
      expect(source, file).not.toMatch(/GETUTCDATE|new Date/);
    }
  });
});
