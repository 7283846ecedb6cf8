import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const declared =
  /^export (?:declare |abstract |async )*(?:function|class|interface|type|const) (\w+)(?! from)/;

it('every exported symbol of the library has a doc comment', () => {
  const bare: string[] = [];
  for (const file of globSync('{shared,functions}/**/*.ts')) {
    const lines = readFileSync(file, 'utf8').split('\n');
    lines.forEach((line, index) => {
      const name = declared.exec(line)?.[1];
      // An overload is documented by the one before it.
      const before = lines.slice(0, index).findLast((above) => !above.startsWith('export function'));
      if (name !== undefined && !before?.trimEnd().endsWith('*/')) bare.push(`${file}:${index + 1} ${name}`);
    });
  }
  expect(bare).toEqual([]);
});
