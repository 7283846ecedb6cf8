import { button, byId, el, renderRows, say } from './dom.js';
import { age, amount, counted, instant, laneKey, laneLabel, laneText, printable, sum } from './format.js';

/** @import { LaneName } from '../../../shared/operations/requests.ts' */
/** @import { Count, LaneStatus, StatusResponse } from '../../../shared/operations/responses.ts' */
/** @typedef {{ pause(status: LaneStatus): void, resume(status: LaneStatus): void, failed(lane: LaneName): void }} LaneActions */

/** The table of lanes. What needs a person stands first. */
export class Lanes {
  #actions;
  #filter = byId('lane-filter', HTMLInputElement);
  /** @type {StatusResponse | null} */
  #status = null;

  /** @param {LaneActions} actions */
  constructor(actions) {
    this.#actions = actions;
    this.#filter.addEventListener('input', () => this.#render());
  }

  /** @param {StatusResponse} status */
  show(status) {
    this.#status = status;
    this.#render();
  }

  #render() {
    if (this.#status === null) return;
    const wanted = this.#filter.value.trim().toLowerCase();
    const lanes = this.#status.lanes
      .filter(({ lane }) => laneText(lane).toLowerCase().includes(wanted))
      .toSorted((a, b) => urgency(a) - urgency(b) || laneText(a.lane).localeCompare(laneText(b.lane)));
    renderRows(
      byId('lane-rows', HTMLTableSectionElement),
      lanes,
      ({ lane }) => laneKey(lane),
      (lane) => row(lane, this.#actions),
    );
    byId('lane-table', HTMLElement).hidden = lanes.length === 0;
    say(byId('lanes-empty', HTMLElement), remark(this.#status, lanes.length));
  }
}

/**
 * @param {StatusResponse} status
 * @param {number} listed
 */
function remark({ lanes, more }, listed) {
  if (lanes.length === 0) return 'Nothing is due, waiting, held or Failed.';
  if (listed === 0) return 'No lane has that in its name.';
  return more ? 'There are more lanes than are listed.' : '';
}

/** @param {LaneStatus} lane */
function urgency({ state, failed, blockedKeys, expiredLeases }) {
  if (state === 'open') return 0;
  if (blockedKeys.count > 0) return 1;
  if (failed.count > 0) return 2;
  return state === 'paused' || expiredLeases.count > 0 ? 3 : 4;
}

/**
 * @param {LaneStatus} status
 * @param {LaneActions} actions
 */
function row(status, actions) {
  const { lane, state } = status;
  return el(
    'tr',
    { class: state },
    el('th', { scope: 'row' }, el('span', { class: 'box' }, lane.box), ' ', printable(laneLabel(lane))),
    el('td', {}, el('span', { class: `tag ${state}` }, state)),
    el('td', { class: 'number' }, failedCell(status, actions)),
    number(status.blockedKeys, 'bad'),
    number(status.due),
    el('td', { class: 'number' }, age(status.oldestDueSeconds)),
    number(status.waiting),
    number(status.held),
    number(status.leased),
    el('td', { class: 'note' }, ...notes(status).map((note) => el('span', {}, printable(note)))),
    el('td', {}, stateButton(status, actions)),
  );
}

/**
 * @param {Count} count
 * @param {string} tone
 */
function number(count, tone = '') {
  return el('td', { class: `number ${count.count === 0 ? 'zero' : tone}` }, amount(count));
}

/**
 * @param {LaneStatus} status
 * @param {LaneActions} actions
 */
function failedCell({ lane, failed }, actions) {
  if (failed.count === 0) return el('span', { class: 'zero' }, '0');
  const says = `Show the ${counted(failed, 'Failed message')} of ${laneText(lane)}`;
  const attributes = { class: 'bad', title: says, 'aria-label': says, focus: `failed ${laneKey(lane)}` };
  return button(amount(failed), attributes, () => actions.failed(lane));
}

/**
 * @param {LaneStatus} status
 * @param {LaneActions} actions
 */
function stateButton(status, actions) {
  const paused = status.state === 'paused';
  const says = `${paused ? 'Resume' : 'Pause'} ${touched(status)}: ${unfinishedText(status)}`;
  return button(
    stateButtonText(status),
    { title: says, 'aria-label': says, focus: `state ${laneKey(status.lane)}` },
    () => (paused ? actions.resume(status) : actions.pause(status)),
  );
}

/**
 * What the button says: of a lane with nothing to stop no figure, which would read as if nothing came of it.
 * @param {LaneStatus} status
 */
export function stateButtonText(status) {
  const verb = status.state === 'paused' ? 'Resume' : 'Pause';
  const { count, more } = unfinished(status);
  return count === 0 && !more ? `${verb}…` : `${verb} ${amount({ count, more })}…`;
}

/**
 * Messages of a lane that a pause stops, or that go on after it.
 * @param {LaneStatus} status
 */
function unfinished({ due, waiting, held }) {
  return sum(due, waiting, held);
}

/**
 * The same with the lane, as buttons say it; the lane alone where nothing is in it.
 * @param {LaneStatus} status
 */
export function touched(status) {
  const lane = laneText(status.lane);
  const { count, more } = unfinished(status);
  return count === 0 && !more ? lane : `${counted({ count, more }, 'message')} of ${lane}`;
}

/**
 * Of what kind they are.
 * @param {LaneStatus} status
 */
export function unfinishedText({ due, waiting, held }) {
  return `${amount(due)} due, ${amount(waiting)} waiting and ${amount(held)} held`;
}

/**
 * @param {LaneStatus} status
 * @returns {string[]}
 */
function notes({ lane, due, pause, breaker, expiredLeases, leasedBuckets, lastClaimSeconds }) {
  const said = [];
  if (pause !== null) {
    const until = pause.until === null ? 'until somebody resumes it' : `until ${instant(pause.until)}`;
    said.push(`Paused by ${pause.by ?? '?'} at ${instant(pause.since)} ${until}: ${pause.reason ?? ''}`);
  }
  if (breaker !== null) {
    const since = breaker.since === null ? '' : ` since ${instant(breaker.since)}`;
    said.push(
      `${counted(breaker.failures, 'failure')}${since}, next probe ${instant(breaker.until)}: ${breaker.lastError ?? ''}`,
    );
  }
  if (expiredLeases.count > 0) said.push(`${counted(expiredLeases, 'lease')} ran out`);
  if (leasedBuckets > 0) said.push(`relays hold ${counted(leasedBuckets, 'bucket')}`);
  if (lastClaimSeconds !== null) said.push(`a handler asked ${age(lastClaimSeconds)} ago`);
  else if (lane.box === 'inbox' && due.count > 0) said.push('no handler has asked for work yet');
  return said;
}
