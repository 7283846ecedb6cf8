/** What is asked for a decision about messages: a dry run, and then the whole of it, page by page. */
import { ask } from './api.js';
import { laneFields } from './format.js';

/** @import { LaneName } from '../../../shared/operations/requests.ts' */
/** @import { FateResponse } from '../../../shared/operations/responses.ts' */
/** @typedef {'requeue' | 'discard'} Decision */
/**
 * What somebody wants to decide: about messages by id, or about a lane's Failed ones; in words for the title, and of
 * which lane for the button.
 * @typedef {{ command: Decision, what: string, of: string } & ({ ids: string[] } | { lane: LaneName })} Wanted
 */
/** @typedef {{ reason: string, by: string }} Who */

/** Messages that one request takes; more go in several, so that each answer comes soon. */
const pageSize = 200;
/** So many a dry run counts: the most that one request may have. */
const dryRunSize = 1000;

/**
 * What it would do now.
 * @param {Wanted} wanted
 * @param {Who} who
 * @returns {Promise<FateResponse<Decision>>}
 */
export async function dryRun(wanted, { reason, by }) {
  // A dry run needs a reason as well, and keeps none.
  const who = { reason: reason || 'dry run', by };
  return await ask({ ...requestOf(wanted, who, dryRunSize, null), dryRun: true });
}

/**
 * Does it, each message once: one that fails again meanwhile isn't taken twice. Each page goes to `done` as it is
 * answered, which says whether to go on.
 * @param {Wanted} wanted
 * @param {Who} who
 * @param {(page: FateResponse<Decision>) => boolean} done
 */
export async function run(wanted, who, done) {
  /** @type {string | null} */
  let after = null;
  do {
    /** @type {FateResponse<Decision>} */
    const page = await ask(requestOf(wanted, who, pageSize, after));
    after = page.next;
    if (!done(page)) return;
  } while (after !== null);
}

/**
 * @param {Wanted} wanted
 * @param {Who} who
 * @param {number} limit
 * @param {string | null} after
 * @returns {{ command: Decision } & Record<string, unknown>}
 */
function requestOf(wanted, who, limit, after) {
  const select =
    'ids' in wanted ? { ids: wanted.ids } : { all: true, ...laneFields(wanted.lane), limit, after };
  const { command } = wanted;
  return command === 'requeue' ? { command, ...select } : { command, ...select, ...who };
}
