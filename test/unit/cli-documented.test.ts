import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { makeProgram } from '../../cli/program.ts';

const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
const flags = (text: string): string[] => text.match(/--[a-z][a-z-]*/g) ?? [];

const { commands } = makeProgram();
const optionsOf = (name: string): string[] =>
  commands.find((command) => command.name() === name)?.options.map(({ long }) => long ?? '') ?? [];
/** What every command that goes to a database or a function takes: said once. */
const everywhere = optionsOf('status');
const lane = ['--destination', '--type', '--consumer'];

describe('docs/operations.md has the options of', () => {
  it.each(commands.map((command) => command.name()))('relaybox %s, and no others', (name) => {
    const row = page.split('\n').find((line) => new RegExp(`^\\| \`${name}[ \`]`).test(line)) ?? '';
    const own = optionsOf(name).filter((flag) => !everywhere.includes(flag));
    const said = new Set(flags(row).filter((flag) => flag !== '--'));
    // A lane's are said once; a row that is for a lane says so.
    const laneOfItsOwn = / lane/.test(row) ? lane.filter((flag) => own.includes(flag)) : [];
    if (row.includes('as `requeue`')) for (const flag of optionsOf('requeue')) said.add(flag);
    for (const flag of [...laneOfItsOwn, ...everywhere]) said.add(flag);
    expect([...said].filter((flag) => !everywhere.includes(flag)).sort()).toEqual(own.sort());
  });

  it('every command alike', () => {
    const head = page.slice(0, page.indexOf('| command | its own options |'));
    expect(everywhere.filter((flag) => !flags(head).includes(flag))).toEqual([]);
  });
});

it('no command of a page is given an option that it does not have', () => {
  const wrong: string[] = [];
  for (const line of page.split('\n')) {
    for (const [call, name = '', rest = ''] of line.matchAll(/\brelaybox ([a-z]+)((?: +[^`#|]+)?)/g)) {
      const known = optionsOf(name);
      if (known.length > 0 && flags(rest).some((flag) => ![...known, '--help'].includes(flag)))
        wrong.push(call);
    }
  }
  expect(wrong).toEqual([]);
});
