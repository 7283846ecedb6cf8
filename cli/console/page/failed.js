import { ask } from './api.js';
import { byId, el, messageOf, renderRows, say } from './dom.js';
import { boxChoices, choiceText, laneChoices, noneText } from './failed-choices.js';
import { failedRow } from './failed-row.js';
import { amount, counted, laneFields, laneKey, laneText } from './format.js';

/** @import { LaneName } from '../../../shared/operations/requests.ts' */
/** @import { FailedMessage, FailedResponse, StatusResponse } from '../../../shared/operations/responses.ts' */
/** @import { Choice } from './failed-choices.js' */
/** @import { Decision, Wanted } from './fate.js' */

const pageSize = 50;

/** The Failed messages of a lane, page by page, with what can be decided about them. */
export class Failed {
  #actions;
  #select = byId('failed-lane', HTMLSelectElement);
  #every = byId('failed-every', HTMLInputElement);
  /** @type {readonly Choice[]} */
  #choices = boxChoices;
  #chosenByHand = false;
  /** @type {Set<string>} */
  #selected = new Set();
  /** Where each page begins, the current one last. @type {(string | null)[]} */
  #places = [null];
  /** @type {Pick<FailedResponse, 'messages' | 'next'>} */
  #page = { messages: [], next: null };

  /** @param {{ decide(wanted: Wanted): void, show(id: string): void }} actions */
  constructor(actions) {
    this.#actions = actions;
    this.#select.addEventListener('change', () => {
      this.#chosenByHand = true;
      void this.#goTo([null]);
    });
    this.#every.addEventListener('change', () => {
      this.#selected = new Set(this.#every.checked ? this.#page.messages.map(({ id }) => id) : []);
      this.#render();
    });
    byId('failed-next', HTMLButtonElement).addEventListener('click', () => {
      void this.#goTo([...this.#places, this.#page.next]);
    });
    byId('failed-back', HTMLButtonElement).addEventListener('click', () => {
      void this.#goTo(this.#places.slice(0, -1));
    });
    for (const command of /** @type {const} */ (['requeue', 'discard'])) {
      byId(`${command}-some`, HTMLElement).addEventListener('click', () => this.#decideSome(command));
      byId(`${command}-all`, HTMLElement).addEventListener('click', () => this.#decideAll(command));
    }
  }

  /**
   * Takes the lanes that have Failed messages into the choice. Until somebody chooses, the most urgent one is chosen.
   * @param {StatusResponse} status
   */
  setLanes(status) {
    const before = this.#chosen();
    this.#choices = [...laneChoices(status.lanes, before.lane), ...boxChoices];
    renderRows(
      this.#select,
      this.#choices,
      ({ key }) => key,
      (choice) => el('option', { value: choice.key }, choiceText(choice)),
    );
    const urgent = this.#choices.find(({ failed }) => failed !== null && failed.count > 0) ?? boxChoices[0];
    this.#select.value = this.#chosenByHand ? before.key : urgent.key;
    if (this.#select.value !== before.key) this.#moveTo([null]);
  }

  /** Reads the page that is looked at. */
  async load() {
    const asked = this.#chosen();
    const after = this.#places.at(-1) ?? null;
    const lane = asked.lane === null ? {} : laneFields(asked.lane);
    const answer = await ask({ command: 'failed', box: asked.box, ...lane, limit: pageSize, after });
    // Meanwhile another lane or page may have been asked for: that answer is on its way.
    if (asked.key !== this.#chosen().key || after !== (this.#places.at(-1) ?? null)) return;
    this.#page = answer;
    const here = answer.messages.map(({ id }) => id);
    this.#selected = new Set(here.filter((id) => this.#selected.has(id)));
    this.#render();
  }

  /**
   * Shows a lane's messages, and goes there.
   * @param {LaneName} lane
   */
  async choose(lane) {
    this.#select.value = laneKey(lane);
    this.#chosenByHand = true;
    const section = byId('failed', HTMLElement);
    section.scrollIntoView();
    section.focus({ preventScroll: true });
    await this.#goTo([null]);
  }

  /** @param {(string | null)[]} places */
  async #goTo(places) {
    this.#moveTo(places);
    await this.load().catch((error) => say(byId('failed-empty', HTMLElement), messageOf(error)));
  }

  /** @param {(string | null)[]} places */
  #moveTo(places) {
    this.#places = places;
    this.#selected = new Set();
  }

  #chosen() {
    return this.#choices.find(({ key }) => key === this.#select.value) ?? boxChoices[0];
  }

  #render() {
    const { messages, next } = this.#page;
    const rows = byId('failed-rows', HTMLTableSectionElement);
    renderRows(
      rows,
      messages,
      ({ id }) => id,
      (message) => this.#row(message),
    );
    for (const box of rows.querySelectorAll('input')) box.checked = this.#selected.has(box.value);
    const { size } = this.#selected;
    this.#every.checked = size > 0 && size === messages.length;
    this.#every.indeterminate = size > 0 && size < messages.length;
    const none = messages.length === 0;
    byId('failed-table', HTMLElement).hidden = none;
    byId('failed-decisions', HTMLElement).hidden = none;
    say(byId('failed-empty', HTMLElement), none ? noneText(this.#chosen(), this.#places.length) : '');
    const pages = this.#places.length;
    say(byId('failed-page', HTMLElement), next === null && pages === 1 ? '' : `page ${pages}`);
    byId('failed-back', HTMLElement).hidden = pages === 1;
    byId('failed-next', HTMLElement).hidden = next === null;
    this.#renderDecisions();
  }

  #renderDecisions() {
    const { lane, failed, text } = this.#chosen();
    const none = this.#selected.size === 0;
    for (const [command, verb] of /** @type {const} */ ([
      ['requeue', 'Requeue'],
      ['discard', 'Discard'],
    ])) {
      const some = byId(`${command}-some`, HTMLButtonElement);
      some.textContent = none ? `${verb} selected…` : `${verb} ${this.#selection().what}…`;
      some.disabled = none;
      const all = byId(`${command}-all`, HTMLButtonElement);
      all.textContent = `${verb} all ${failed === null ? '' : `${amount(failed)} Failed `}of ${text}…`;
      all.hidden = lane === null;
    }
  }

  /** @param {FailedMessage} message */
  #row(message) {
    return failedRow(message, {
      show: this.#actions.show,
      select: (id, selected) => {
        if (selected) this.#selected.add(id);
        else this.#selected.delete(id);
        this.#render();
      },
    });
  }

  /** What is selected, in words, and of which lane. */
  #selection() {
    const selected = this.#page.messages.filter(({ id }) => this.#selected.has(id));
    const lanes = new Set(selected.map(({ lane }) => laneText(lane)));
    const of = lanes.size === 1 ? [...lanes].join('') : counted(lanes.size, 'lane');
    return { of, what: `${counted(selected.length, 'selected message')} of ${of}` };
  }

  /** @param {Decision} command */
  #decideSome(command) {
    this.#actions.decide({ command, ids: [...this.#selected], ...this.#selection() });
  }

  /** @param {Decision} command */
  #decideAll(command) {
    const { lane, text } = this.#chosen();
    if (lane === null) return;
    this.#actions.decide({ command, lane, what: `all Failed messages of ${text}`, of: text });
  }
}
