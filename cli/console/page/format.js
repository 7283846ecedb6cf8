/** Figures and names as the command line writes them (`cli/output.ts`); a test holds the two together. */

/** @import { LaneName } from '../../../shared/operations/requests.ts' */
/** @import { Count } from '../../../shared/operations/responses.ts' */

/**
 * Text that other programs wrote, on one line, without characters that hide or turn round what stands beside them.
 * @param {string} text
 */
export function printable(text) {
  return text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ');
}

/**
 * The same for a longer text, which keeps its lines.
 * @param {string} text
 */
export function printableLines(text) {
  return text.split(/\r?\n/).map(printable).join('\n');
}

/**
 * @param {string | null} text
 * @param {number} length
 */
export function shortened(text, length) {
  const line = printable(text ?? '');
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

/**
 * A count, `10000+` where there are more than were counted.
 * @param {Count} count
 */
export function amount({ count, more }) {
  return more ? `${count}+` : String(count);
}

/**
 * A count with its noun.
 * @param {number | Count} count
 * @param {string} noun
 */
export function counted(count, noun) {
  const { count: number, more } = typeof count === 'number' ? { count, more: false } : count;
  return `${number}${more ? '+' : ''} ${noun}${number === 1 && !more ? '' : 's'}`;
}

/**
 * @param {Count[]} counts
 * @returns {Count}
 */
export function sum(...counts) {
  return {
    count: counts.reduce((total, { count }) => total + count, 0),
    more: counts.some(({ more }) => more),
  };
}

/**
 * Seconds as a person reads them.
 * @param {number | null} seconds
 */
export function age(seconds) {
  if (seconds === null) return '–';
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} m`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/**
 * An instant of the database, to the second.
 * @param {string | null} iso
 */
export function instant(iso) {
  return iso === null ? '–' : iso.replace('T', ' ').replace(/(\.\d+)?Z$/, '');
}

/** How unlimited retries are stored. */
const anyNumber = 2_147_483_647;

/**
 * How often a message failed, and how often that may be: its first run is no retry.
 * @param {number} count
 * @param {number} maxRetries
 */
export function failures(count, maxRetries) {
  const retries = `${maxRetries} ${maxRetries === 1 ? 'retry' : 'retries'}`;
  return `${counted(count, 'time')}, ${maxRetries === anyNumber ? 'any number of retries' : retries} allowed`;
}

/**
 * When the page looked last, written as the database's instants are. It is this machine's clock that says it.
 * @param {Date} now
 */
export function asOf(now) {
  return `as of ${instant(now.toISOString())}`;
}

/** @param {LaneName} lane */
export function laneLabel(lane) {
  if (lane.box === 'outbox') return lane.destination;
  return lane.consumer === '' ? lane.messageType : `${lane.consumer}/${lane.messageType}`;
}

/**
 * A lane with its box, since a destination and a type may have one name.
 * @param {LaneName} lane
 */
export function laneText(lane) {
  return printable(`${lane.box} ${laneLabel(lane)}`);
}

/**
 * A lane as requests name it.
 * @param {LaneName} lane
 * @returns {Record<string, string>}
 */
export function laneFields(lane) {
  if (lane.box === 'outbox') return { destination: lane.destination };
  return { messageType: lane.messageType, consumer: lane.consumer };
}

/**
 * A lane as a key: two lanes have the same only where they are the same.
 * @param {LaneName} lane
 */
export function laneKey(lane) {
  return JSON.stringify(laneFields(lane));
}
