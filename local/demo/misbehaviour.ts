/** Orders of these items make the demo's invoice handler misbehave; all others are invoiced at once. */
export const items = {
  throwsTwice: 'a clock that sticks twice',
  poison: 'a cursed vase',
  killsProcess: 'a bomb',
} as const;

/** What everybody else orders. */
export const harmless = ['a lamp', 'a chair', 'a teapot', 'a kite', 'a mirror'] as const;

/** Does to the handler what its order's item says. */
export function misbehave(item: string, attempt: number): void {
  if (item === items.throwsTwice && attempt <= 2) throw new Error(`stuck, attempt ${attempt}`);
  if (item === items.poison) throw new Error('no invoice can be written for a cursed vase');
  // Not an error that could be caught: the process is gone, in the middle of the handler's transaction.
  if (item === items.killsProcess) process.exit(1);
}
