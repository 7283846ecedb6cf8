import { describe, expect, test } from 'vitest';
import { controlOf } from '../../shared/lambda/postgres/control.ts';

describe('the guard of a transaction', () => {
  test.each([
    'COMMIT',
    ' \n;;\t begin',
    '-- x\nEND;',
    '-- x\rcommit',
    '-- x /* \n commit',
    '/* a */ /* b */ abort',
    '/* a /* nested */ COMMENT */ commit',
    '/**/commit',
    'start/* */transaction',
    'PREPARE TRANSACTION $$x$$',
    'rollback',
    'Rollback and chain',
    'ROLLBACK WORK',
    "rollback prepared 'x'",
    ';/* a */;commit and chain',
  ])('refuses %j', (text) => {
    expect(controlOf(text)).toBeDefined();
  });

  test.each([
    '/* find */ SELECT CASE WHEN true THEN 1 /* else null */ END',
    '/* a */ DO $$ /* b */ BEGIN PERFORM 1; END $$',
    '/* q */ select 1 /* x */ as begin',
    '/* a /* nested */ still a comment */ select 1 -- commit',
    '/* no end: commit',
    '/* a /* nested */ commit',
    '-- commit',
    '-- c\nselect 1',
    'end_x',
    'commit$',
    'étendue',
    'starting',
    'start',
    'prepare q as select 1',
    'ROLLBACK TO SAVEPOINT one',
    'rollback work /* x */ to one',
    'rollback transaction to one',
    '"commit"',
    '(select 1)',
    '',
  ])('lets %j pass', (text) => {
    expect(controlOf(text)).toBeUndefined();
  });

  test('takes no longer than reading the text, however many comments lead it', () => {
    const began = performance.now();
    for (const comment of ['/* --------- */\n', '/*', '/*/', '--\n', ';', '-- /* */\r', ' ']) {
      controlOf(`${comment.repeat(100_000)}select 1`);
    }
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});
