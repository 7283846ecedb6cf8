import type { Command } from 'commander';
import type { Box } from '../../shared/operations/requests.ts';
import type {
  FailedMessage,
  FailedResponse,
  LaneStatus,
  ShownMessage,
  StatusResponse,
} from '../../shared/operations/responses.ts';
import { emptyLaneHint, isEmptyLane, laneNameOf } from '../empty-lane.ts';
import { exit, UsageError } from '../errors.ts';
import { type LaneOptions, laneFields, type TargetOptions, whole, withLane, withTarget } from '../options.ts';
import { age, amount, counted, facts, failures, laneText, shortened, table, write } from '../output.ts';
import { withTargetOf } from '../target.ts';

/** Commands that only look: `status`, `failed`, `show`. */
export function addLooks(program: Command): void {
  withTarget(program.command('status'))
    .description(
      'Lanes with something in them: what is due, waiting, held and Failed; those that are paused or open; and types that a handler asks for, empty or not.',
    )
    .addHelpText('after', '\nExample:\n  relaybox status --function orders-maintain')
    .action(async (options: TargetOptions) => {
      const answer = await withTargetOf(options, (target) => target.ask({ command: 'status' }));
      write(answer, options.json === true, () => statusText(answer));
    });

  withLane(withTarget(program.command('failed')))
    .description('Failed messages, with what they failed of. Payloads are never shown here.')
    .option('--outbox', 'only the outbox')
    .option('--inbox', 'only the inbox')
    .option('--limit <n>', 'at most so many of each box', whole(1), 50)
    .option('--after <cursor>', 'the next page, as the page before says it')
    .addHelpText('after', '\nExample:\n  relaybox failed --destination orders --limit 20')
    .action(failed);

  withTarget(program.command('show'))
    .description('One message with all that is known of it: by its id, or by what its sender calls it.')
    .argument('[id]', "the row's id, as `failed` lists it")
    .option('--source <name>', 'with --external-id: the source of the inbox')
    .option('--external-id <id>', "the sender's message id")
    .option('--consumer <name>', "with --source: whose copy (default: everybody's)")
    .option('--payload', 'show the payload too')
    .addHelpText(
      'after',
      '\nExamples:\n  relaybox show 0194b6d0-0000-7000-8000-000000000001\n  relaybox show --source payments --external-id 4711 --payload',
    )
    .action(show);
}

interface FailedOptions extends TargetOptions, LaneOptions {
  readonly outbox?: boolean;
  readonly inbox?: boolean;
  readonly limit: number;
  readonly after?: string;
}

async function failed(options: FailedOptions): Promise<void> {
  const lane = laneFields(options);
  const boxes = boxesOf(options);
  if (options.after !== undefined && boxes.length > 1) {
    throw new UsageError('--after is a place in one box: add --outbox or --inbox');
  }
  const [answers, empty] = await withTargetOf(options, async (target) => {
    const pages: Partial<Record<Box, FailedResponse>> = {};
    for (const box of boxes) {
      const { limit, after } = options;
      pages[box] = await target.ask({ command: 'failed', box, ...lane, limit, after });
    }
    const none = Object.values(pages).every(({ messages }) => messages.length === 0);
    const named = Object.keys(lane).length > 0;
    const hinted = none && named && options.json !== true;
    return [pages, hinted && (await isEmptyLane(target, laneNameOf(options)))] as const;
  });
  const hint = empty ? `\n${emptyLaneHint}.` : '';
  const text = () => boxes.map((box) => failedText(box, answers[box])).join('\n\n') + hint;
  write(answers, options.json === true, text);
}

function boxesOf({ outbox, inbox, destination, type }: FailedOptions): readonly Box[] {
  if ((outbox && type !== undefined) || (inbox && destination !== undefined)) {
    throw new UsageError('--destination is a lane of the outbox, --type one of the inbox');
  }
  const all = outbox === inbox && destination === undefined && type === undefined;
  if (all) return ['outbox', 'inbox'];
  return [outbox || destination !== undefined ? 'outbox' : 'inbox'];
}

interface ShowOptions extends TargetOptions {
  readonly source?: string;
  readonly externalId?: string;
  readonly consumer?: string;
  readonly payload?: boolean;
}

async function show(id: string | undefined, options: ShowOptions): Promise<void> {
  const { source, externalId: externalMessageId, consumer, payload } = options;
  if (id === undefined && (source === undefined || externalMessageId === undefined)) {
    throw new UsageError('name a message: by its id, or by --source and --external-id');
  }
  const answer = await withTargetOf(options, (target) =>
    target.ask({ command: 'show', id, source, externalMessageId, consumer, payload }),
  );
  write(answer, options.json === true, () =>
    answer.messages.length === 0 ? nothingText(id) : answer.messages.map(shownText).join('\n\n'),
  );
  if (answer.messages.length === 0) process.exitCode = exit.finding;
}

function nothingText(id: string | undefined): string {
  const nothing = 'There is no such message: it may have been removed by retention.';
  // A sender's id is often a UUID too, and looks like a row's.
  return id === undefined
    ? nothing
    : `${nothing}\nIf ${id} is what the sender calls it: relaybox show --source <source> --external-id ${id}`;
}

function statusText({ lanes, more }: StatusResponse): string {
  if (lanes.length === 0) return 'Nothing is due, waiting, held or Failed.';
  const headings = [
    'LANE',
    'STATE',
    'DUE',
    'OLDEST',
    'WAITING',
    'HELD',
    'LEASED',
    'FAILED',
    'BLOCKED KEYS',
    'NOTE',
  ];
  const rows = lanes.map((lane) => [
    laneText(lane.lane),
    lane.state,
    amount(lane.due),
    age(lane.oldestDueSeconds),
    amount(lane.waiting),
    amount(lane.held),
    amount(lane.leased),
    amount(lane.failed),
    amount(lane.blockedKeys),
    shortened(note(lane), 80),
  ]);
  return table(headings, rows) + (more ? '\nThere are more lanes than are listed.' : '');
}

function note({ pause, breaker, leasedBuckets }: LaneStatus): string {
  if (pause !== null) {
    const until = pause.until === null ? '' : ` until ${pause.until}`;
    return `by ${pause.by ?? '?'}${until}: ${pause.reason ?? ''}`;
  }
  if (breaker !== null) return `${counted(breaker.failures, 'failure')}: ${breaker.lastError ?? ''}`;
  return leasedBuckets > 0 ? `relays hold ${counted(leasedBuckets, 'bucket')}` : '';
}

function failedText(box: Box, page: FailedResponse | undefined): string {
  if (page === undefined || page.messages.length === 0) return `The ${box} has no Failed messages here.`;
  const headings = ['ID', 'LANE', 'TYPE', 'FAILED AT', 'FAILURES', 'BLOCKS ITS KEY', 'ERROR'];
  const rows = page.messages.map((message: FailedMessage) => [
    message.id,
    laneText(message.lane),
    message.messageType,
    message.failedAt ?? '–',
    String(message.retryCount),
    message.blocksKey ? 'yes' : '–',
    shortened(message.lastError),
  ]);
  const next = page.next === null ? '' : `\nMore: relaybox failed --${box} --after ${page.next}`;
  return table(headings, rows) + next;
}

function shownText(message: ShownMessage): string {
  const { lane } = message;
  const known = facts([
    ['id', message.id],
    ['lane', laneText(lane)],
    ['state', `${message.state}: ${message.situation}`],
    ['type', message.messageType],
    ['source', message.source],
    ['external id', message.externalMessageId],
    ['partition key', message.partitionKey],
    ['correlation id', message.correlationId],
    ['headers', message.headers === null ? null : JSON.stringify(message.headers)],
    ['failed', failures(message.retryCount, message.maxRetries)],
    ['created', message.createdAt],
    ['next attempt', message.nextAttemptAt],
    ['locked until', message.lockedUntil],
    ['ended', message.endedAt],
    ['sequence', message.sequence],
    ['bucket', message.bucket],
    ['last error', message.lastError],
    ['payload', counted(message.payloadBytes, 'byte')],
  ]);
  // As it is: whoever asks for a payload may want to give it to another program.
  return message.payload === undefined ? known : `${known}\n${message.payload}`;
}
