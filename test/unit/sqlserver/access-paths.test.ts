import { beforeAll, describe, expect, it } from 'vitest';
import { migrationSql } from '../../../shared/store/sqlserver/migration-sql.ts';
import { inboxStatements } from './inbox-statements.ts';
import { names, outboxStatements, type Sent } from './statements.ts';

// What SQL Server needs to be told, and to find said, so that it goes by the index that a statement is made for. No grammar knows it.

let statements: readonly Sent[] = [];
beforeAll(async () => {
  statements = [...(await outboxStatements()), ...(await inboxStatements())];
});

/** A table in a FROM or JOIN, and the rest of its subquery or statement. */
interface Reference {
  readonly by: string;
  readonly table: string;
  readonly alias: string;
  readonly hint: string;
  readonly rest: string;
}

/** All references to tables of ours under an alias. */
function references({ by, text }: Sent): readonly Reference[] {
  const pattern =
    /(\[(?:[^\]]|\]\])*\]\.\[(?:[^\]]|\]\])*\]) AS (\w+)(?: WITH (\((?:[^()]|\([^()]*\))*\)))?/g;
  return [...text.matchAll(pattern)].map((match) => {
    const [whole, table = '', alias = '', hint = ''] = match;
    return { by, table, alias, hint, rest: upToEnd(text, match.index + whole.length) };
  });
}

/** The text up to the parenthesis that closes what it is in, or to the end of the statement. */
function upToEnd(text: string, from: number): string {
  let depth = 0;
  let at = from;
  for (; at < text.length && text[at] !== ';'; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')' && --depth < 0) break;
  }
  return text.slice(from, at);
}

const all = (): readonly Reference[] => statements.flatMap(references);

/** The filtered indexes that the migrations make: what each one's filter says, part by part. */
function filters(): ReadonlyMap<string, readonly string[]> {
  const made = [
    ...migrationSql(names).matchAll(/CREATE INDEX (\[[^\n]*?\]) ON [^;]*?WHERE ([^;]*?) WITH \(/g),
  ];
  return new Map(made.map(([, name = '', filter = '']) => [name, filter.split(' AND ')]));
}

describe('a statement for SQL Server', () => {
  it('that names a filtered index says its whole filter, in its own words: else there is no plan (error 8622)', () => {
    const known = filters();
    expect(known.size).toBeGreaterThanOrEqual(6);
    let seen = 0;
    for (const { by, alias, hint, rest } of all()) {
      const index = /INDEX\((\[.*?\])\)/.exec(hint)?.[1];
      for (const part of known.get(index ?? '') ?? []) {
        seen++;
        expect(rest, `${by}: ${index}`).toContain(`${alias}.${part}`);
      }
    }
    expect(seen).toBeGreaterThan(100);
  });

  it('that wants some rows in their order goes by a named index: the clustered one has that order too, and all history', () => {
    let seen = 0;
    for (const { by, table, alias, hint, rest } of all()) {
      if (table !== names.outbox && table !== names.inbox) continue;
      // Of the subquery itself, not of what a function in it orders by.
      if (!new RegExp(`ORDER BY ${alias}\\.\\[Sequence\\]\\s*$`).test(rest)) continue;
      seen++;
      // By their ids is as good: that walks nothing either.
      expect(hint, `${by}: ${rest}`).toMatch(/INDEX\(|FORCESEEK/);
    }
    expect(seen).toBeGreaterThan(20);
  });

  it('that looks through rows of a big table goes by a named index: another way passes all of them, and locks them where it locks', () => {
    let seen = 0;
    for (const { by, table, alias, hint, rest } of all()) {
      // A lane's leases are few, and their key is the only index.
      if (!hint.includes('READPAST') || table === names.leases) continue;
      // By the clustered index on purpose: a page of keys in their own order, and the row at a given place.
      if (rest.includes(`ORDER BY ${alias}.[KeyDigest]`) || rest.includes('= k.[HeadSequence]')) continue;
      // A list for a person, planned anew for what was asked.
      if (rest.includes('OPTION (RECOMPILE)')) continue;
      seen++;
      expect(hint, `${by}: ${table}${rest}`).toMatch(/INDEX\(|FORCESEEK/);
    }
    expect(seen).toBeGreaterThan(60);
  });

  it('that looks for a row by its id seeks, whether it changes it or not: a scan of a small table waits at every row in work', () => {
    let seen = 0;
    for (const { by, table, alias, hint, rest } of all()) {
      if (![names.outbox, names.inbox].includes(table)) continue;
      const joined = new RegExp(`^ ON ${alias}\\.\\[Id\\] = `).test(rest);
      const asked = new RegExp(`WHERE ${alias}\\.\\[Id\\] (?:= CONVERT|IN )`).test(rest);
      if (!joined && !asked) continue;
      seen++;
      expect(hint, `${by}: ${table} ${rest.slice(0, 80)}`).toContain('FORCESEEK');
    }
    expect(seen).toBeGreaterThan(30);
  });

  it('says what else must hold of an outbox row that it looks for by its id so that no other index than the id’s serves it', () => {
    let seen = 0;
    for (const { by, table, alias, rest } of all()) {
      if (
        table !== names.outbox ||
        !new RegExp(`\\bON ${alias}\\.\\[Id\\] = |AND ${alias}\\.\\[Id\\] = g`).test(rest)
      )
        continue;
      seen++;
      // What each of the outbox's indexes leads with.
      const bare = rest.replace(/1 = CASE WHEN [\s\S]*? THEN 1 ELSE 0 END/g, '');
      const served = new RegExp(`${alias}\\.\\[(?:Destination|Held|State)\\] (?:=|<|>|IN|IS)`);
      expect(bare.slice(bare.indexOf('WHERE')), `${by}: ${rest}`).not.toMatch(served);
    }
    expect(seen).toBeGreaterThan(12);
  });

  it('compares a digest of the driver’s as BINARY, as the columns are: else the column is converted, and no index serves', () => {
    let seen = 0;
    for (const { by, text, values } of statements) {
      for (const [index, value] of values.entries()) {
        if (!Buffer.isBuffer(value)) continue;
        seen++;
        expect(text, by).not.toMatch(new RegExp(`(?:=|<>|<|>|IN \\() ?@p${index + 1}\\b`));
      }
    }
    expect(seen).toBeGreaterThan(10);
  });

  it('finds computed columns by their indexes: nothing in their definition can be simplified away', () => {
    const columns = [...migrationSql(names).matchAll(/ADD (\[\w+\]) AS ([^;]*);/g)];
    expect(columns.map(([, name]) => name)).toEqual(['[Identity]', '[LaneDigest]', '[KeyDigest]']);
    for (const [, name, definition = ''] of columns) {
      expect(definition, name).not.toMatch(/\b(?:CASE|COALESCE|IIF)\b/);
      // SQL Server drops an ISNULL over a column that can't be null, and then knows the definition no longer.
      for (const [, over] of definition.matchAll(/ISNULL\(\[(\w+)\]/g)) expect(over, name).toBe('Consumer');
      expect(definition, `${name} has the type that it is compared with`).toMatch(/^CONVERT\(BINARY\(32\), /);
    }
  });

  it('finds in a filtered index all that its filter tests, but for the state, which a claim changes', () => {
    const made = [
      ...migrationSql(names).matchAll(/CREATE INDEX (\[[^\n]*?\]) ON [^(]*(\([^;]*?)WHERE ([^;]*?) WITH \(/g),
    ];
    expect(made.length).toBeGreaterThanOrEqual(6);
    for (const [, name, stored = '', filter = ''] of made) {
      for (const [column] of filter.matchAll(/\[\w+\]/g)) {
        if (column !== '[State]') expect(stored, name).toContain(column);
      }
    }
  });
});
