/** Whose Failed messages can be looked at: a lane's, or all of a box. */
import { amount, laneKey, laneText } from './format.js';

/** @import { Box, LaneName } from '../../../shared/operations/requests.ts' */
/** @import { Count, LaneStatus } from '../../../shared/operations/responses.ts' */
/** @typedef {{ key: string, text: string, box: Box, lane: LaneName | null, failed: Count | null }} Choice */

/**
 * All lanes of a box: also those that `status` doesn't list.
 * @type {readonly [Choice, Choice]}
 */
export const boxChoices = [boxChoice('outbox'), boxChoice('inbox')];

/**
 * Lanes with Failed messages, those first whose keys are blocked; and the chosen one, though it may have none any more.
 * @param {readonly LaneStatus[]} lanes
 * @param {LaneName | null} kept
 * @returns {Choice[]}
 */
export function laneChoices(lanes, kept) {
  const isKept = (/** @type {LaneName} */ lane) => kept !== null && laneKey(lane) === laneKey(kept);
  const listed = lanes
    .filter(({ failed, lane }) => failed.count > 0 || isKept(lane))
    .toSorted((a, b) => b.blockedKeys.count - a.blockedKeys.count || b.failed.count - a.failed.count)
    .map(({ lane, failed }) => choiceOf(lane, failed));
  if (kept === null || listed.some(({ key }) => key === laneKey(kept))) return listed;
  return [...listed, choiceOf(kept, { count: 0, more: false })];
}

/**
 * How the choice reads in the list.
 * @param {Choice} choice
 */
export function choiceText({ text, failed }) {
  return failed === null ? text : `${text} (${amount(failed)})`;
}

/**
 * What stands in place of an empty page of the choice's messages: a later page may be empty where the first is not.
 * @param {Choice} choice
 * @param {number} page
 */
export function noneText({ box, lane, text }, page) {
  const of = lane === null ? `The ${box}` : text;
  return page === 1 ? `${of} has no Failed messages.` : `${of} has no more Failed messages.`;
}

/**
 * @param {LaneName} lane
 * @param {Count} failed
 * @returns {Choice}
 */
function choiceOf(lane, failed) {
  return { key: laneKey(lane), text: laneText(lane), box: lane.box, lane, failed };
}

/**
 * @param {Box} box
 * @returns {Choice}
 */
function boxChoice(box) {
  return { key: box, text: `all lanes of the ${box}`, box, lane: null, failed: null };
}
