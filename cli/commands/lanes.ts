import type { Command } from 'commander';
import type { LaneResponse } from '../../shared/operations/responses.ts';
import { emptyLaneHint, isEmptyLane } from '../empty-lane.ts';
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
      const [answer, empty] = await withTargetOf(options, async (target) => {
        const paused = await target.ask(request);
        return [paused, await isEmptyLane(target, paused.lane)] as const;
      });
      write({ ...answer, empty }, options.json === true, () => pausedText(answer, empty));
    });

  withLane(withTarget(program.command('resume')))
    .description(
      'Lets a paused lane go on. An unavailable destination (open) goes on by itself when a probe passes.',
    )
    .addHelpText('after', '\nExample:\n  relaybox resume --destination orders')
    .action(async (options: TargetOptions & LaneOptions) => {
      const request = { command: 'resume' as const, ...namedLane(options) };
      const answer = await withTargetOf(options, async (target) => {
        const resumed = await target.ask(request);
        return { ...resumed, empty: !resumed.changed && (await isEmptyLane(target, resumed.lane)) };
      });
      write(answer, options.json === true, () => resumedText(answer));
    });
}

function namedLane(options: LaneOptions): Record<string, string> {
  const lane = laneFields(options);
  if (Object.keys(lane).length === 0) {
    throw new UsageError('name the lane: --destination for the outbox, or --type for the inbox');
  }
  return lane;
}

function resumedText({ lane, changed, empty }: LaneResponse<'resume'> & { readonly empty: boolean }): string {
  if (changed) return `${laneText(lane)} goes on`;
  return `${laneText(lane)} was not paused${empty ? `\n${emptyLaneHint}.` : ''}`;
}

function pausedText({ lane, pause }: LaneResponse<'pause'>, empty: boolean): string {
  const until = pause?.until ?? null;
  const paused = `${laneText(lane)} is paused ${until === null ? 'until it is resumed' : `until ${until}`}`;
  return empty ? `${paused}\n${emptyLaneHint}: it is paused all the same.` : paused;
}
