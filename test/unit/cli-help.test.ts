import { expect, it } from 'vitest';
import { makeProgram } from '../../cli/program.ts';

function help(name: string): string {
  const command = makeProgram().commands.find((each) => each.name() === name);
  let text = '';
  command?.configureOutput({
    writeOut: (written) => {
      text += written;
    },
  });
  command?.outputHelp();
  return text;
}

it.each(makeProgram().commands.map((command) => command.name()))(
  'relaybox %s --help has an example that names the command',
  (name) => {
    expect(help(name)).toMatch(new RegExp(`Examples?:\\n  relaybox ${name}\\b`));
  },
);

it('has a command for each thing an operator does', () => {
  const names = 'status failed show requeue discard pause resume purge doctor health console migrate local';
  expect(makeProgram().commands.map((command) => command.name())).toEqual(names.split(' '));
});
