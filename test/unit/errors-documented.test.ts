import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');

test('every error code is listed in docs/errors.md, and no other', () => {
  const variables = new Set(read('docs/configuration.md').match(/\bRELAYBOX_[A-Z_]+/g));
  // A name in quotes is a code or a variable, whatever is done with it; RELAYBOX_SCHEMA is both.
  const texts = globSync('{shared,functions,infra,cli,local}/**/*.ts', { cwd: root }).map(read);
  const named = (pattern: RegExp): string[] =>
    texts.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1] ?? ''));
  const inCode = [
    ...named(/readonly code = '(RELAYBOX_[A-Z_]+)'/g),
    ...named(/['"`](RELAYBOX_[A-Z_]+)['"`]/g).filter((name) => !variables.has(name)),
  ];
  const listed = [...read('docs/errors.md').matchAll(/^\| `(RELAYBOX_[A-Z_]+)`/gm)].map((match) => match[1]);
  expect(new Set(inCode)).toEqual(new Set(listed));
  expect(listed.length).toBe(new Set(listed).size);
});
