import type { Command } from 'commander';
import type { LaneName } from '../../shared/operations/requests.ts';
import type { LaneResponse, StatusResponse } from '../../shared/operations/responses.ts';
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
        // The pause counts, and stands already: figures that can't be had must not make it look failed.
        const status = await target.ask({ command: 'status' }).catch(() => undefined);
        return [paused, status !== undefined && isEmpty(status, paused.lane)] as const;
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

/** Nothing of a lane is there: mostly a lane that nobody uses, by a slip in its name. */
function isEmpty({ lanes, more }: StatusResponse, named: LaneName): boolean {
  const status = lanes.find(({ lane }) => laneText(lane) === laneText(named));
  if (status === undefined) return !more;
  const { due, waiting, held, leased, failed } = status;
  return [due, waiting, held, leased, failed].every(({ count }) => count === 0);
}

function pausedText({ lane, pause }: LaneResponse<'pause'>, empty: boolean): string {
  const until = pause?.until ?? null;
  const paused = `${laneText(lane)} is paused ${until === null ? 'until it is resumed' : `until ${until}`}`;
  return empty
    ? `${paused}\nNothing is in this lane now. See that its name is right: it is paused all the same.`
    : paused;
}
