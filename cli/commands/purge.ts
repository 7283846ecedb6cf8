import { Argument, type Command } from 'commander';
import { defaults } from '../../shared/delivery/defaults.ts';
import type { Purgeable } from '../../shared/operations/requests.ts';
import type { PurgeResponse } from '../../shared/operations/responses.ts';
import { confirm } from '../confirm.ts';
import { exit } from '../errors.ts';
import { type TargetOptions, whole, withTarget } from '../options.ts';
import { counted, write } from '../output.ts';
import { type Target, withTargetOf } from '../target.ts';

interface PurgeOptions extends TargetOptions {
  readonly olderThan?: number;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** Retention by hand: `purge`. */
export function addPurge(program: Command): void {
  withTarget(program.command('purge'))
    .description(
      'Removes Processed and Discarded rows now, oldest first, in small batches. Others are never removed, however old.',
    )
    .addArgument(new Argument('<from>', 'the table').choices(['outbox', 'inbox', 'receipts']))
    .option(
      '--older-than <days>',
      `by when they ended (default: ${defaults.outboxRetentionDays} for the outbox, ${defaults.inboxRetentionDays} for the others)`,
      whole(0),
    )
    .option('--dry-run', 'only count them')
    .option('--yes', "don't ask")
    .addHelpText(
      'after',
      `
An inbox row that is gone can't tell a duplicate any more: keep them longer than your queues may redeliver.
Example:
  relaybox purge outbox --older-than 3 --dry-run`,
    )
    .action(purge);
}

async function purge(from: Purgeable, options: PurgeOptions): Promise<void> {
  const request = { command: 'purge' as const, from, olderThanDays: options.olderThan };
  const answer = await withTargetOf(options, async (target) => {
    if (options.dryRun) return await target.ask({ ...request, dryRun: true });
    if (!options.yes) {
      const { removed } = await target.ask({ ...request, dryRun: true });
      const rows = `${counted(removed, 'row')} of the ${from} that ended at least ${ago(from, options)}`;
      if (!(await confirm(`remove ${rows}?`, options))) return undefined;
    }
    return await everyBatch(target, request);
  });
  if (answer === undefined) {
    process.stderr.write('Nothing was done.\n');
    process.exitCode = exit.finding;
    return;
  }
  const verb = answer.dryRun ? 'would be removed' : 'removed';
  write(answer, options.json === true, () => `${counted(answer.removed, 'row')} of the ${from} ${verb}`);
}

/** From when on, in words; the defaults are those of the request. */
function ago(from: Purgeable, { olderThan }: PurgeOptions): string {
  const otherwise = from === 'outbox' ? defaults.outboxRetentionDays : defaults.inboxRetentionDays;
  return `${counted(olderThan ?? otherwise, 'day')} ago`;
}

async function everyBatch(
  target: Target,
  request: {
    readonly command: 'purge';
    readonly from: Purgeable;
    readonly olderThanDays: number | undefined;
  },
): Promise<PurgeResponse> {
  let count = 0;
  for (;;) {
    const page = await target.ask(request);
    count += page.removed.count;
    // Rows that somebody has locked are stepped over: a call that found none would find none again.
    if (!page.removed.more || page.removed.count === 0) return { ...page, removed: { count, more: false } };
    process.stderr.write(`${count} so far …\n`);
  }
}
