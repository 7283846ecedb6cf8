/** How values stand in messages. */

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** 345600 → `4 days`; what isn't a whole number of a larger unit stays in seconds: `365 s`. */
export function duration(seconds: number): string {
  if (seconds === 0) return '0 s';
  const unit = UNITS.find(([, size]) => seconds % size === 0 && (size > 60 || seconds > 300));
  if (unit === undefined) return `${seconds} s`;
  const count = seconds / unit[1];
  return `${count} ${unit[0]}${count === 1 ? '' : 's'}`;
}

/** As one writes it in a construct: `Duration.seconds(365)`, `Duration.days(14)`. */
export function durationCode(seconds: number): string {
  return seconds % 86_400 === 0 && seconds > 0
    ? `Duration.days(${seconds / 86_400})`
    : `Duration.seconds(${seconds})`;
}

/** `1 connection`, `3 connections`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`;
}
