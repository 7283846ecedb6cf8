import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const pages = ['README.md', ...globSync('docs/*.md', { cwd: root })];

it.each(['docs/guarantees.md', 'docs/how-it-works.md'])('every file that %s names is there', (page) => {
  const named = [
    ...read(page).matchAll(/`((?:shared|functions|infra|local|cli|examples|scripts|test)\/[^`\s]*)`/g),
  ];
  const paths = named.map((match) => match[1] ?? '');
  expect(paths.length).toBeGreaterThan(5);
  expect(paths.filter((path) => globSync(path.replace(/\/$/, ''), { cwd: root }).length === 0)).toEqual([]);
});

it('the map of the repository names every folder at its top, and of the library', () => {
  const map = /^```\n([\s\S]*?)^```/m.exec(read('docs/how-it-works.md'))?.[1] ?? '';
  const tops = globSync('*/', { cwd: root }).filter((name) =>
    /^(shared|functions|infra|local|cli|examples|scripts|test)$/.test(name.replace(/\/$/, '')),
  );
  const names = [...tops, ...globSync('{shared,test}/*/', { cwd: root })].map(
    (path) => path.replace(/\/$/, '').split('/').at(-1) ?? '',
  );
  expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(map))).toEqual([]);
});

it.each(pages)('the links of %s lead somewhere', (page) => {
  const links = [...read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)/g)].map(
    (match) => match[1] ?? '',
  );
  expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
});

it('every check of the doctor is in the table of docs/operations.md', () => {
  const files = globSync('shared/store/{postgres,sqlserver,operations}/**/*.ts', { cwd: root }).map(read);
  const checks = new Set(
    files.flatMap((text) => [...text.matchAll(/\bcheck: '([a-z-]+)'/g)].map((match) => match[1])),
  );
  const listed = [...read('docs/operations.md').matchAll(/^\| `([a-z-]+)` +\|/gm)].map((match) => match[1]);
  expect(checks.size).toBeGreaterThan(8);
  expect([...checks].filter((check) => !listed.includes(check))).toEqual([]);
});
