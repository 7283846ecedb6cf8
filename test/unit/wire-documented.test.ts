import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { names, UNREADABLE_TYPE } from '../../shared/message/envelope/names.ts';

const page = readFileSync(new URL('../../docs/wire.md', import.meta.url), 'utf8');

it('docs/wire.md shows the mapping that the compiler has checked', () => {
  const compiled = readFileSync(new URL('documented/mapping.ts', import.meta.url), 'utf8');
  const shown = /^```ts\n([\s\S]*?)^```/m.exec(page)?.[1];
  expect(shown).toBe(
    compiled.replace("'../../../shared/lambda/postgres/index.ts'", "'relaybox/postgres/lambda'"),
  );
});

it.each(Object.entries(names))('docs/wire.md has the wire name of %s', (_fact, name) => {
  expect(page).toContain(`| \`${name}\` |`);
});

it('docs/wire.md names the type of what can’t be read', () => {
  expect(page).toContain(UNREADABLE_TYPE);
});
