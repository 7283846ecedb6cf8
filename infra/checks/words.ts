/** How values stand in messages. */

/** Seconds of a day. */
export const DAY = 86_400;

/** `4 days`, and what isn't whole days in seconds, so that the figures of one message can be compared: `365 s`. */
export function duration(seconds: number): string {
  return seconds > 0 && seconds % DAY === 0 ? count(seconds / DAY, 'day') : `${seconds} s`;
}

/** As one writes it in a construct: `Duration.seconds(365)`, `Duration.days(14)`. */
export function durationCode(seconds: number): string {
  return seconds > 0 && seconds % DAY === 0
    ? `Duration.days(${seconds / DAY})`
    : `Duration.seconds(${seconds})`;
}

/** `1 connection`, `3 connections`. */
export function count(number: number, noun: string): string {
  return `${number.toLocaleString('en-US')} ${noun}${number === 1 ? '' : 's'}`;
}
