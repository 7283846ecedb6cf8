import type { Command } from 'commander';
import type { FateResponse } from '../../shared/operations/responses.ts';
import { confirm } from '../confirm.ts';
import { emptyLaneHint, isEmptyLane, laneNameOf } from '../empty-lane.ts';
import { exit, UsageError } from '../errors.ts';
import {
  type LaneOptions,
  laneFields,
  type TargetOptions,
  whoAmI,
  whole,
  withLane,
  withTarget,
} from '../options.ts';
import { counted, table, write } from '../output.ts';
import { type Request, type Target, withTargetOf } from '../target.ts';

type Decision = 'requeue' | 'discard';

interface DecisionOptions extends TargetOptions, LaneOptions {
  readonly all?: boolean;
  readonly wait: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly reason?: string;
  readonly by?: string;
}

/** What is written: for a whole lane, also whether nothing is in it. */
type Answer = FateResponse<Decision> & { readonly empty?: boolean };

/** Messages that one request takes; more go in several. */
const pageSize = 200;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Commands that decide about messages: `requeue` and `discard`. */
export function addDecisions(program: Command): void {
  decision(program, 'requeue')
    .description(
      'Gives Failed messages another try, with their retries anew. What could not be read is read again by ingest.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  relaybox requeue 0194b6d0-0000-7000-8000-000000000001\n  relaybox requeue --all --destination orders --dry-run',
    )
    .action((ids: readonly string[], options: DecisionOptions) => decide('requeue', ids, options, {}));

  decision(program, 'discard')
    .description(
      'Ends messages for good, with a reason. By id: Failed, due, waiting or held ones; --all: Failed ones.',
    )
    .requiredOption('--reason <text>', 'why; kept with the message')
    .option('--by <who>', 'who decides (default: user@host)')
    .addHelpText(
      'after',
      '\nExample:\n  relaybox discard 0194b6d0-0000-7000-8000-000000000001 --reason "sent twice, see INC-12"',
    )
    .action((ids: readonly string[], options: DecisionOptions) =>
      decide('discard', ids, options, { reason: options.reason, by: options.by ?? whoAmI() }),
    );
}

function decision(program: Command, name: Decision): Command {
  return withLane(withTarget(program.command(name)))
    .argument('[ids...]', 'messages, as `failed` lists them')
    .option('--all', "instead of ids: a lane's Failed messages, with --destination or --type")
    .option('--wait <seconds>', 'wait so long for a bucket that a relay holds', whole(0), 35)
    .option('--dry-run', 'only say what would be done')
    .option('--yes', "don't ask");
}

async function decide(
  command: Decision,
  ids: readonly string[],
  options: DecisionOptions,
  extra: Readonly<Record<string, unknown>>,
): Promise<void> {
  const lane = laneFields(options);
  const named = Object.keys(lane).length > 0;
  if (options.all ? ids.length > 0 || !named : ids.length === 0 || named) {
    throw new UsageError(`${command} takes ids, or --all with --destination or --type`);
  }
  // Before anything is asked: nobody should say yes to what is refused after that.
  const wrong = ids.find((id) => !uuid.test(id));
  if (wrong !== undefined) {
    throw new UsageError(`${wrong} is no UUID: ${command} takes the ids that relaybox failed lists`);
  }
  const request = { command, ...extra, waitSeconds: options.wait };
  const dryRun = options.dryRun === true;
  const answer = await withTargetOf(options, async (target) => {
    if (!dryRun && !options.yes) {
      const what = options.all ? await failedOf(target, request, lane) : counted(ids.length, 'message');
      if (what === undefined) return await withHint(target, options, together(command, []));
      if (!(await confirm(`${command} ${what}?`, options))) return undefined;
    }
    const asked = { ...request, dryRun };
    if (!options.all) return await byIds(target, asked, ids);
    return await withHint(target, options, await everyPage(target, asked, lane));
  });
  if (answer === undefined) {
    process.stderr.write('Nothing was done.\n');
    process.exitCode = exit.finding;
    return;
  }
  write(answer, options.json === true, () => text(answer));
  if (answer.refused.length > 0) process.exitCode = exit.finding;
}

type DecisionRequest = Request<Decision>;

/** How many of the lane it would be, for the question; undefined where there is none. */
async function failedOf(
  target: Target,
  request: DecisionRequest,
  lane: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const first = await target.ask({ ...request, all: true, ...lane, limit: 1000, dryRun: true });
  const { length } = first.changed;
  if (length === 0 && first.next === null) return undefined;
  const more = first.next === null ? '' : ' or more';
  return `${length}${more} Failed ${length === 1 && more === '' ? 'message' : 'messages'} of ${lane['destination'] ?? lane['messageType']}`;
}

async function byIds(
  target: Target,
  request: DecisionRequest,
  ids: readonly string[],
): Promise<FateResponse<Decision>> {
  const pages: FateResponse<Decision>[] = [];
  for (let at = 0; at < ids.length; at += pageSize) {
    pages.push(await target.ask({ ...request, ids: ids.slice(at, at + pageSize) }));
  }
  return together(request.command, pages);
}

/** Page by page, each message once: one that fails again meanwhile isn't taken twice. */
async function everyPage(
  target: Target,
  request: DecisionRequest,
  lane: Readonly<Record<string, string>>,
): Promise<FateResponse<Decision>> {
  const pages: FateResponse<Decision>[] = [];
  let after: string | null = null;
  do {
    const page: FateResponse<Decision> = await target.ask({
      ...request,
      all: true,
      ...lane,
      limit: pageSize,
      after,
    });
    pages.push(page);
    after = page.next;
    const done = pages.reduce((sum, { changed }) => sum + changed.length, 0);
    if (after !== null) process.stderr.write(`${done} so far …\n`);
  } while (after !== null);
  return together(request.command, pages);
}

function together(command: Decision, pages: readonly FateResponse<Decision>[]): FateResponse<Decision> {
  return {
    command,
    dryRun: pages[0]?.dryRun ?? false,
    changed: pages.flatMap(({ changed }) => changed),
    refused: pages.flatMap(({ refused }) => refused),
    next: null,
  };
}

/** Of a lane that had nothing to decide about: whether anything is in it at all. */
async function withHint(
  target: Target,
  options: LaneOptions,
  answer: FateResponse<Decision>,
): Promise<Answer> {
  const none = answer.changed.length + answer.refused.length === 0;
  return { ...answer, empty: none && (await isEmptyLane(target, laneNameOf(options))) };
}

function text({ command, dryRun, changed, refused, empty }: Answer): string {
  const verb = `${dryRun ? 'would be ' : ''}${command}${command === 'requeue' ? 'd' : 'ed'}`;
  const done = `${changed.length} ${verb}${refused.length > 0 ? `, ${refused.length} not` : ''}`;
  if (empty) return `${done}\n${emptyLaneHint}.`;
  if (refused.length === 0) return done;
  return `${done}\n${table(
    ['ID', 'WHY NOT'],
    refused.map(({ id, reason }) => [id, reason]),
  )}`;
}
