import type { RequestOf } from '../../operations/operations.ts';
import type { LaneResponse } from '../../operations/responses.ts';
import type { Row } from './rows.ts';

/** Answers a pause out of the row (`since`, `until`) that its statement wrote. */
export function paused(
  { lane, by, reason }: RequestOf<'pause'>,
  row: Row | undefined,
): LaneResponse<'pause'> {
  const [since, until] = [row?.text('since') ?? '', row?.textOrNull('until') ?? null];
  return { command: 'pause', lane, changed: true, pause: { by, reason, since, until } };
}

/** Answers a resumption: `ran` says whether a person's pause ended by it. */
export function resumed({ lane }: RequestOf<'resume'>, row: Row | undefined): LaneResponse<'resume'> {
  return { command: 'resume', lane, changed: row?.flag('ran') ?? false, pause: null };
}
