import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test('every error code is listed in docs/errors.md, and no other', () => {
  const root = new URL('../../', import.meta.url);
  const inCode = globSync('{shared,functions,cli,local}/**/*.ts', { cwd: root })
    .map((file) => readFileSync(new URL(file, root), 'utf8'))
    .flatMap((text) => [...text.matchAll(/readonly code = '(RELAYBOX_[A-Z_]+)'/g)].map((match) => match[1]));
  const listed = [
    ...readFileSync(new URL('docs/errors.md', root), 'utf8').matchAll(/^\| `(RELAYBOX_[A-Z_]+)`/gm),
  ].map((match) => match[1]);
  expect(new Set(inCode)).toEqual(new Set(listed));
  expect(listed.length).toBe(new Set(listed).size);
});
