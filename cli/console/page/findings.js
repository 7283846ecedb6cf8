import { byId, el, renderRows, say } from './dom.js';
import { counted, laneKey, printable, sum } from './format.js';

/** @import { DoctorResponse, Finding, LaneStatus, StatusResponse } from '../../../shared/operations/responses.ts' */

/**
 * What the doctor found, the worst first; what it found well is folded away.
 * @param {DoctorResponse} doctor
 */
export function showFindings({ findings }) {
  const wrong = findings.filter(({ severity }) => severity !== 'ok');
  const well = findings.filter(({ severity }) => severity === 'ok');
  renderRows(byId('findings', HTMLOListElement), wrong, JSON.stringify, finding);
  say(byId('findings-none', HTMLElement), wrong.length === 0 ? 'The doctor found nothing wrong.' : '');
  byId('well', HTMLDetailsElement).hidden = well.length === 0;
  say(byId('well-summary', HTMLElement), `${counted(well.length, 'check')} found nothing wrong`);
  renderRows(byId('well-list', HTMLUListElement), well, JSON.stringify, ({ check, what }) =>
    el('li', {}, el('b', {}, check), ` ${printable(what)}`),
  );
}

/** @param {Finding} found */
function finding({ check, severity, what, todo }) {
  return el(
    'li',
    { class: severity },
    el('span', { class: `tag ${severity}` }, severity),
    el('b', {}, check),
    el('span', { class: 'what' }, printable(what)),
    todo === '' ? null : el('span', { class: 'todo' }, printable(todo)),
  );
}

/**
 * The whole of it in one line, and in the tab's title. Nobody is told that all is well where not all was seen.
 * @param {StatusResponse | null} status
 * @param {DoctorResponse | null} doctor
 * @param {boolean} blind
 */
export function showVerdict(status, doctor, blind) {
  const findings = doctor?.findings ?? [];
  const problems = findings.filter(({ severity }) => severity === 'problem').length;
  const warnings = findings.filter(({ severity }) => severity === 'warning').length;
  const said = [
    blind ? 'Not all can be seen now: what is shown may be from before' : '',
    problems > 0 ? counted(problems, 'problem') : '',
    warnings > 0 ? counted(warnings, 'warning') : '',
    ...laneFacts(status?.lanes ?? []),
  ].filter((part) => part !== '');
  const place = byId('verdict', HTMLElement);
  const worst = blind || problems > 0 ? 'problem' : said.length > 0 ? 'warning' : 'ok';
  place.className = `verdict ${worst}`;
  say(place, said.length > 0 ? said.join(' · ') : 'Nothing is wrong.');
  document.title = `${said[0] ?? 'Nothing is wrong'} – Relaybox`;
}

/** @param {readonly LaneStatus[]} lanes */
function laneFacts(lanes) {
  const failed = lanes.filter((lane) => lane.failed.count > 0);
  const blocked = sum(...lanes.map((lane) => lane.blockedKeys));
  const open = lanes.filter(({ state }) => state === 'open').length;
  const paused = lanes.filter(({ state }) => state === 'paused').length;
  return [
    failed.length > 0
      ? `${counted(sum(...failed.map((lane) => lane.failed)), 'Failed message')} in ${counted(new Set(failed.map(({ lane }) => laneKey(lane))).size, 'lane')}`
      : '',
    blocked.count > 0 ? counted(blocked, 'blocked key') : '',
    open > 0 ? `${counted(open, 'lane')} open` : '',
    paused > 0 ? `${counted(paused, 'lane')} paused` : '',
  ];
}
