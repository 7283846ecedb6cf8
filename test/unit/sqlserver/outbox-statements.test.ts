import { beforeAll, describe, expect, it } from 'vitest';
import { bare, MARK, names, outboxStatements, type Sent } from './statements.ts';

// There is no SQL Server where these run: what is checked here is what can be read off a statement.

let statements: readonly Sent[] = [];
beforeAll(async () => {
  statements = await outboxStatements();
});

/** Each table hint with the table it is on. */
function hints(text: string): { readonly table: string; readonly hint: string }[] {
  return [...text.matchAll(/(\[[^\n]*?\])(?: AS \w+)? WITH \(((?:[^()]|\([^()]*\))*)\)/g)].map((match) => ({
    table: (match[1] ?? '').split(/ (?:FROM|JOIN|IN) /).at(-1) ?? '',
    hint: match[2] ?? '',
  }));
}

function of(by: string): Sent[] {
  const found = statements.filter((one) => one.by === by);
  expect(found.length, `statements of "${by}"`).toBeGreaterThan(0);
  return found;
}

describe('each statement of the outbox on SQL Server', () => {
  it('is sent by a method of the store, every one of which is called here', () => {
    expect(new Set(statements.map(({ by }) => by)).size).toBeGreaterThanOrEqual(20);
  });

  it('binds every value: each placeholder has one, and none stands in the text', () => {
    for (const { by, text, values } of statements) {
      const used = new Set([...text.matchAll(/@p(\d+)\b/g)].map((match) => Number(match[1])));
      expect(
        [...used].sort((a, b) => a - b),
        by,
      ).toEqual(values.map((_, index) => index + 1));
      expect(text, by).not.toContain(MARK);
      expect(bare(text), `${by}: no placeholder of PostgreSQL's`).not.toMatch(/\$\d/);
    }
  });

  it('sends only what the driver has a type for: texts, numbers and nulls; lists as one JSON text', () => {
    for (const { by, values } of statements) {
      for (const value of values) {
        expect(value === null || ['string', 'number'].includes(typeof value), by).toBe(true);
        if (typeof value === 'string' && value.startsWith('[')) expect(() => JSON.parse(value)).not.toThrow();
      }
    }
  });

  it('names tables in brackets with their schema, and columns in brackets', () => {
    for (const { by, text } of statements) {
      expect(text, by).toContain(`${names.schema}.[`);
      expect(bare(text), `${by}: quotes and brackets close`).not.toMatch(/['\]"]{3,}|\[(?!\])/);
      // Beside keywords, functions, variables, aliases and OPENJSON's declarations nothing is left without brackets.
      expect(bare(text), by).not.toMatch(/\b(?:FROM|JOIN|UPDATE|INTO) (?:dbo|outbox|inbox)/i);
      expect(bare(text), `${by}: a column after an alias is in brackets`).not.toMatch(/\b[a-z]\.[A-Za-z]/);
    }
  });

  it('closes what it opens', () => {
    for (const { by, text } of statements) {
      const code = bare(text);
      expect(code.split('(').length, `${by}: parentheses`).toBe(code.split(')').length);
      expect(count(code, /\bBEGIN\b(?! TRAN)/g) + count(code, /\bCASE\b/g), `${by}: blocks`).toBe(
        count(code, /\bEND\b/g),
      );
      expect(count(code, /\bBEGIN TRANSACTION\b/g), `${by}: transactions`).toBe(
        count(code, /\bCOMMIT TRANSACTION\b/g),
      );
    }
  });

  it('with a transaction in it is undone as a whole by any error, and leaves no setting behind', () => {
    for (const { by, text } of statements) {
      const code = bare(text);
      if (/BEGIN TRANSACTION/.test(code))
        expect(code, by).toMatch(/SET XACT_ABORT ON;[\s\S]*BEGIN TRANSACTION/);
      // The caller's transaction keeps the setting that its owner gave it.
      if (by === 'producer add') expect(code).not.toMatch(/XACT_ABORT|TRANSACTION;|LOCK_TIMEOUT|ISOLATION/);
    }
  });

  it('answers in one result set', () => {
    for (const { by, text } of statements) {
      const answers = bare(text)
        .split(/;/)
        .map((piece) => piece.replace(/^\s*(?:IF [^\n]*\n\s*|BEGIN\s+)*/, ''))
        .filter((piece) => /^SELECT (?!@)/.test(piece) || /OUTPUT (?![^\n]*INTO @)/.test(piece));
      expect(answers.length, by).toBeLessThanOrEqual(1);
    }
  });
});

describe('locks of the outbox on SQL Server', () => {
  it('no look skips locked rows under row versioning: READPAST always has READCOMMITTEDLOCK beside it', () => {
    let seen = 0;
    for (const { by, text } of statements) {
      for (const { hint } of hints(text)) {
        if (!hint.includes('READPAST')) continue;
        seen += 1;
        expect(hint, by).toContain('READCOMMITTEDLOCK');
        expect(hint, by).toContain('ROWLOCK');
      }
      expect(text, by).not.toMatch(/NOLOCK|READUNCOMMITTED|TABLOCK|PAGLOCK|\bMERGE\b/);
    }
    expect(seen).toBeGreaterThan(10);
  });

  it('a bucket is claimed with UPDLOCK and READPAST on the lease rows, in the statement that writes them', () => {
    for (const by of ['lease', 'lease named']) {
      const claim = of(by)[0]?.text ?? '';
      expect(claim.match(/;/g)?.length, 'one statement').toBe(1);
      const rows = hints(claim).filter(({ hint }) => hint.includes('UPDLOCK'));
      // On the rows that are chosen and on those that are written, which are the same.
      expect(rows.map(({ hint }) => hint)).toEqual(
        Array(2).fill('UPDLOCK, READPAST, ROWLOCK, READCOMMITTEDLOCK'),
      );
      expect(claim).toContain(`FROM ${names.leases} AS c WITH (UPDLOCK, READPAST`);
    }
  });

  it('what may not be missed is never looked for with READPAST: a known id, what blocks a key, whether a lane is open', () => {
    for (const { text } of of('producer add')) expect(text).not.toContain('READPAST');
    for (const by of ['read', 'hold', 'settle keep']) {
      for (const { text } of of(by)) {
        const blockers = [...text.matchAll(/AS b WITH \(([^\n]*)\)\n/g)].map((match) => match[1]);
        for (const hint of blockers) expect(hint, by).not.toContain('READPAST');
        const lanes = text.split(`FROM ${names.lanes} AS p WITH (`)[1]?.split(')')[0];
        if (lanes !== undefined) expect(lanes).not.toContain('READPAST');
      }
    }
  });

  it('every write to the outbox asks for row locks, and never walks the table to find its rows', () => {
    for (const { by, text } of statements) {
      const writes = [...text.matchAll(/\n\s*(?:UPDATE|DELETE) (\w+)\b[\s\S]*?;/g)].map((match) => match[0]);
      for (const write of writes) {
        expect(write, by).toContain('ROWLOCK');
        if (/(?:UPDATE|DELETE) [of]\b/.test(write))
          expect(write, by).toMatch(
            /INNER LOOP JOIN[\s\S]*FORCESEEK|FORCESEEK[\s\S]*OPTION \(LOOP JOIN, FORCE ORDER\)/,
          );
      }
    }
  });

  it('a settle and a hold are fenced first: the lease by its token, and only its buckets after that', () => {
    for (const { by, text } of statements.filter(({ by }) => /^settle|^hold/.test(by))) {
      if (!text.includes('@mine')) continue;
      const fence = text.indexOf('[LockToken] = CONVERT(UNIQUEIDENTIFIER, @p3)');
      const writes = [...text.matchAll(/(?:UPDATE|DELETE) o\b/g)].map((match) => match.index);
      expect(writes.length, by).toBeGreaterThan(0);
      for (const write of writes) expect(write, by).toBeGreaterThan(fence);
      expect(
        count(text, /o\.\[Bucket\] IN \(SELECT mine\.\[Bucket\] FROM @mine AS mine\)/g),
        by,
      ).toBeGreaterThan(0);
    }
  });

  it('adding takes no range lock: one would make producers wait for each other, whatever their ids', () => {
    for (const { text } of of('producer add')) {
      expect(text).not.toMatch(/HOLDLOCK|SERIALIZABLE|TRY|CATCH/);
      expect(text).toContain("@LockOwner = 'Transaction'");
      // A scan would wait at rows that other producers haven't committed.
      expect(text).toMatch(/NOT EXISTS \(\s*SELECT 1 FROM [^\n]*FORCESEEK\)/);
    }
  });
});

describe('time in the outbox on SQL Server', () => {
  it('is the server’s: durations are sent, and no instant comes back', () => {
    for (const { by, text } of statements) {
      expect(text, by).not.toMatch(/GETDATE|GETUTCDATE|CURRENT_TIMESTAMP|SYSDATETIME\(\)/);
      expect(text.split(/\nSELECT /).at(-1), by).not.toMatch(/AtUtc\] AS|UntilUtc\] AS/);
    }
  });

  it('fractions of seconds are sent as whole milliseconds', () => {
    const outcomes = JSON.parse(String(of('settle failed block')[0]?.values[4]));
    expect(outcomes.map(({ ms }: { ms: number | null }) => ms)).toEqual([1500, null]);
  });
});

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
