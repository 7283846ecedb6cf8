import { hostname, userInfo } from 'node:os';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { UsageError } from './errors.ts';

/** Where a command goes, and how it answers. */
export interface TargetOptions {
  readonly url?: string;
  readonly function?: string;
  readonly schema?: string;
  readonly outboxTable?: string;
  readonly inboxTable?: string;
  readonly ca?: string;
  readonly json?: boolean;
}

/** A lane named on the command line. */
export interface LaneOptions {
  readonly destination?: string;
  readonly type?: string;
  readonly consumer?: string;
}

/** Options that a command for a database or a deployed function takes: the maintain function, but for `migrate`. */
export function withTarget(command: Command, deployed: 'maintain' | 'migrate' = 'maintain'): Command {
  return command
    .addOption(
      orFrom(
        'RELAYBOX_DATABASE_URL',
        new Option('--url <url>', 'the database: postgres://user:password@host/name, or sqlserver://…'),
      ),
    )
    .addOption(
      orFrom(
        'RELAYBOX_FUNCTION',
        new Option(
          '--function <name>',
          `the deployed ${deployed} function, for a database without a route from here`,
        ),
      ),
    )
    .addOption(orFrom('RELAYBOX_SCHEMA', new Option('--schema <name>', 'schema of the tables, with --url')))
    .addOption(orFrom('RELAYBOX_OUTBOX_TABLE', new Option('--outbox-table <name>', 'with --url')))
    .addOption(orFrom('RELAYBOX_INBOX_TABLE', new Option('--inbox-table <name>', 'with --url')))
    .option('--ca <file>', "with --url: the server's root certificate, PEM, where it is not RDS's")
    .option('--json', 'answer in one line of JSON');
}

/** The option, or else the variable. Commander takes an empty variable for a value; here it counts as not set. */
function orFrom(variable: string, option: Option): Option {
  return process.env[variable] === '' ? option : option.env(variable);
}

/** Options that name a lane. */
export function withLane(command: Command): Command {
  return command
    .option('--destination <name>', 'a lane of the outbox')
    .option('--type <name>', 'a lane of the inbox: its message type')
    .option('--consumer <name>', "with --type: whose copies (default: the default consumer's)");
}

/** A lane's fields in a request; empty where none is named. */
export function laneFields({ destination, type, consumer }: LaneOptions): Record<string, string> {
  if (destination !== undefined && (type !== undefined || consumer !== undefined)) {
    throw new UsageError('name one lane: --destination for the outbox, or --type for the inbox');
  }
  if (consumer !== undefined && type === undefined) throw new UsageError('--consumer goes with --type');
  if (destination !== undefined) return { destination };
  if (type === undefined) return {};
  return consumer === undefined ? { messageType: type } : { messageType: type, consumer };
}

/** A whole number of at least `min`. */
export function whole(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min) throw new InvalidArgumentError(`A whole number from ${min} on.`);
    return value;
  };
}

const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** A duration like `90s`, `30m`, `2h` or `1d`, in seconds. */
export function duration(text: string): number {
  const [, digits = '', unit = ''] = /^(\d{1,8})([smhd])$/.exec(text) ?? [];
  const seconds = Number(digits) * (units[unit] ?? 0);
  if (seconds < 1) throw new InvalidArgumentError('A duration like 90s, 30m, 2h or 1d.');
  return seconds;
}

/** Who is at the keyboard, where `--by` doesn't say. */
export function whoAmI(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return hostname();
  }
}
