import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

test('tests and the processes that they start run in a zone of their own, half an hour off', () => {
  const here = new Date(2026, 0, 15).getTimezoneOffset();
  expect(here).toBe(3.5 * 60);
  const there = execFileSync(process.execPath, ['-p', 'new Date(2026, 0, 15).getTimezoneOffset()']);
  expect(Number(there)).toBe(here);
});
