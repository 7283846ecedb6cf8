import { stripVTControlCharacters } from 'node:util';
import { laneLabel } from '../shared/operations/maintain.ts';
import type { LaneName } from '../shared/operations/requests.ts';
import type { Count } from '../shared/operations/responses.ts';

/** Writes an answer: to a script the whole of it, as one line of JSON; to a person the given text. */
export function write(answer: unknown, json: boolean, text: () => string): void {
  process.stdout.write(json ? `${JSON.stringify(answer)}\n` : `${text()}\n`);
}

/** A table with aligned columns. Numbers, as all of a column's cells, stand to the right. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [headings, ...rows].map((row) => row.map(printable));
  const widths = headings.map((_, at) => Math.max(...lines.map((row) => row[at]?.length ?? 0)));
  const right = headings.map((_, at) => rows.every((row) => /^([\d+.]+( ?[smhd])?|–)$/.test(row[at] ?? '')));
  return lines
    .map((row) =>
      row
        .map((cell, at) => (right[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Names and values below each other. What isn't there is left out. */
export function facts(pairs: readonly (readonly [string, string | number | null])[]): string {
  const given = pairs.filter((pair): pair is readonly [string, string | number] => pair[1] !== null);
  const width = Math.max(...given.map(([name]) => name.length));
  return given.map(([name, value]) => `${name.padEnd(width)}  ${printable(String(value))}`).join('\n');
}

/** Text that other programs wrote, without what would move a terminal's cursor or hide a line. */
export function printable(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ');
}

/** Cuts a text for a table; `show` and `--json` have the whole of it. */
export function shortened(text: string | null, length = 60): string {
  const line = printable(text ?? '');
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

/** A count as a person reads it, `10000+` where there are more than were counted. */
export function amount({ count, more }: Count): string {
  return more ? `${count}+` : String(count);
}

/** A count with its noun, `1 message` and `2 messages`. */
export function counted(count: number | Count, noun: string): string {
  const { count: number, more } = typeof count === 'number' ? { count, more: false } : count;
  return `${number}${more ? '+' : ''} ${noun}${number === 1 && !more ? '' : 's'}`;
}

/** Seconds as a person reads them. */
export function age(seconds: number | null): string {
  if (seconds === null) return '–';
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** How often a message failed, and how often that may be: its first run is no retry. */
export function failures(count: number, maxRetries: number): string {
  const allowed =
    maxRetries === anyNumber
      ? 'any number of retries'
      : `${maxRetries} ${maxRetries === 1 ? 'retry' : 'retries'}`;
  return `${counted(count, 'time')}, ${allowed} allowed`;
}

/** How unlimited retries are stored. */
const anyNumber = 2_147_483_647;

/** A lane with its box, since a destination and a type may have one name. */
export function laneText(lane: LaneName): string {
  return `${lane.box} ${laneLabel(lane)}`;
}
