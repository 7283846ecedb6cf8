import type { Command } from 'commander';
import type { LaneResponse } from '../../shared/operations/responses.ts';
import { UsageError } from '../errors.ts';
import {
  duration,
  type LaneOptions,
  laneFields,
  type TargetOptions,
  whoAmI,
  withLane,
  withTarget,
} from '../options.ts';
import { laneText, write } from '../output.ts';
import { withTargetOf } from '../target.ts';

interface PauseOptions extends TargetOptions, LaneOptions {
  readonly reason: string;
  readonly by?: string;
  readonly for?: number;
}

/** Commands that stop and start a lane: `pause` and `resume`. */
export function addLanes(program: Command): void {
  withLane(withTarget(program.command('pause')))
    .description(
      'Stops a lane. What is on the wire or with a handler ends; nothing new is taken; nothing is lost.',
    )
    .requiredOption('--reason <text>', 'why, for whoever finds it paused')
    .option('--by <who>', 'who decides (default: user@host)')
    .option('--for <duration>', 'go on by itself after 30m, 2h, 1d (default: until resumed)', duration)
    .addHelpText(
      'after',
      '\nExample:\n  relaybox pause --destination orders --reason "partner migrates" --for 2h',
    )
    .action(async (options: PauseOptions) => {
      const { reason, by = whoAmI(), for: seconds } = options;
      const request = { command: 'pause' as const, ...namedLane(options), reason, by, seconds };
      const answer = await withTargetOf(options, (target) => target.ask(request));
      write(answer, options.json === true, () => pausedText(answer));
    });

  withLane(withTarget(program.command('resume')))
    .description(
      'Lets a paused lane go on. An unavailable destination (open) goes on by itself when a probe passes.',
    )
    .addHelpText('after', '\nExample:\n  relaybox resume --destination orders')
    .action(async (options: TargetOptions & LaneOptions) => {
      const request = { command: 'resume' as const, ...namedLane(options) };
      const answer = await withTargetOf(options, (target) => target.ask(request));
      write(answer, options.json === true, () =>
        answer.changed ? `${laneText(answer.lane)} goes on` : `${laneText(answer.lane)} was not paused`,
      );
    });
}

function namedLane(options: LaneOptions): Record<string, string> {
  const lane = laneFields(options);
  if (Object.keys(lane).length === 0) {
    throw new UsageError('name the lane: --destination for the outbox, or --type for the inbox');
  }
  return lane;
}

function pausedText({ lane, pause }: LaneResponse<'pause'>): string {
  const until = pause?.until ?? null;
  return `${laneText(lane)} is paused ${until === null ? 'until it is resumed' : `until ${until}`}`;
}
