import { NoAnswer } from './api.js';
import { Dialog } from './dialog.js';
import { byId, el, messageOf, say } from './dom.js';
import { dryRun, run } from './fate.js';
import { counted, printable } from './format.js';

/** @import { FateResponse, Refused } from '../../../shared/operations/responses.ts' */
/** @import { About } from '../server.ts' */
/** @import { Decision, Wanted } from './fate.js' */

const words = {
  requeue: { verb: 'Requeue', done: 'requeued', means: 'Retries begin anew.' },
  discard: {
    verb: 'Discard',
    done: 'discarded',
    means: 'That can’t be undone; what a key holds behind it goes on.',
  },
};

/** The dialog of a decision: a dry run first, then what it would touch on the button that does it. */
export class Decide extends Dialog {
  #about;
  #changed;
  #reason = byId('decide-reason', HTMLTextAreaElement);
  #by = byId('decide-by', HTMLInputElement);
  #go = byId('decide-go', HTMLButtonElement);
  #again = byId('decide-again', HTMLButtonElement);
  #stop = byId('decide-stop', HTMLButtonElement);
  #close = byId('decide-close', HTMLButtonElement);
  #said = byId('decide-said', HTMLElement);
  /** @type {Wanted | null} */
  #wanted = null;
  #stopped = false;

  /**
   * @param {About} about
   * @param {() => void} changed
   */
  constructor(about, changed) {
    super('decide');
    this.#about = about;
    this.#changed = changed;
    this.#by.value = about.by;
    this.#again.addEventListener('click', () => void this.#count());
    this.#stop.addEventListener('click', () => {
      this.#stopped = true;
      this.#stop.hidden = true;
    });
    byId('decide-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      if (!this.#go.disabled && !this.#go.hidden) void this.#confirmed();
    });
  }

  /** @param {Wanted} wanted */
  begin(wanted) {
    // A reason belongs to what it was written for.
    if (this.#wanted?.what !== wanted.what) this.#reason.value = '';
    this.#wanted = wanted;
    const discard = wanted.command === 'discard';
    byId('decide-title', HTMLElement).textContent = `${words[wanted.command].verb} ${wanted.what}`;
    byId('decide-fields', HTMLElement).hidden = !discard;
    this.#reason.required = discard;
    this.#by.required = discard;
    this.#go.className = discard ? 'danger' : 'primary';
    this.#close.textContent = 'Cancel';
    this.open();
    (discard ? this.#reason : this.#close).focus();
    void this.#count();
  }

  async #count() {
    const wanted = this.#wanted;
    if (wanted === null) return;
    const { verb, done, means } = words[wanted.command];
    this.#go.disabled = true;
    this.#go.hidden = false;
    this.#again.hidden = false;
    this.#go.textContent = verb;
    this.#show('Counting …', '', []);
    try {
      const answer = await dryRun(wanted, this.#who());
      if (wanted !== this.#wanted) return;
      const { length } = answer.changed;
      const many = answer.next === null ? counted(length, 'message') : `${length} or more messages`;
      this.#show(`Dry run: ${many} would be ${done}. ${means}`, '', answer.refused);
      this.#go.textContent = `${verb} ${many} of ${wanted.of}`;
      this.#go.disabled = length === 0 && answer.next === null;
    } catch (error) {
      if (wanted === this.#wanted) this.#show('', messageOf(error), []);
    }
  }

  /** Counts once more: nothing is done to more messages, or to others, than the button said. */
  async #confirmed() {
    const before = this.#go.textContent;
    this.setBusy(true);
    await this.#count();
    this.setBusy(false);
    if (this.#go.disabled) return;
    if (this.#go.textContent === before) await this.#run();
    else this.#said.textContent = `That has changed meanwhile. ${this.#said.textContent}`;
  }

  async #run() {
    const wanted = this.#wanted;
    if (wanted === null) return;
    /** @type {FateResponse<Decision>[]} */
    const pages = [];
    this.#begun(wanted);
    let failure = '';
    try {
      await run(wanted, this.#who(), (page) => {
        pages.push(page);
        this.#said.textContent = `${counted(countOf(pages), 'message')} ${words[wanted.command].done} so far …`;
        return !this.#stopped;
      });
    } catch (error) {
      const unknown = ' What was asked for last may have been done: look before you repeat it.';
      failure = `${messageOf(error)}${error instanceof NoAnswer ? unknown : ''}`;
    }
    this.#ended(wanted, pages, failure);
    this.#changed();
  }

  /** @param {Wanted} wanted */
  #begun(wanted) {
    this.#stopped = false;
    this.setBusy(true);
    this.#go.disabled = true;
    this.#again.hidden = true;
    this.#stop.hidden = 'ids' in wanted;
    this.#show('Under way …', '', []);
  }

  /**
   * @param {Wanted} wanted
   * @param {FateResponse<Decision>[]} pages
   * @param {string} failure
   */
  #ended({ command }, pages, failure) {
    const count = countOf(pages);
    const refused = pages.flatMap((page) => page.refused);
    const said = [
      `${counted(count, 'message')} ${words[command].done}${refused.length > 0 ? `, ${refused.length} left as they were` : ''}.`,
      this.#stopped && pages.at(-1)?.next ? 'Stopped before the lane’s end.' : '',
      // A function wakes the relay and the handlers; here nobody does.
      this.#about.kind === 'database' && count > 0 ? 'The next sweep takes what is due now.' : '',
    ];
    this.setBusy(false);
    this.#show(said.join(' '), failure, refused);
    this.#go.hidden = true;
    this.#stop.hidden = true;
    this.#close.textContent = 'Close';
    this.#close.focus();
    if (failure === '') this.#reason.value = '';
  }

  #who() {
    return { reason: this.#reason.value.trim(), by: this.#by.value.trim() || this.#about.by };
  }

  /**
   * @param {string} text
   * @param {string} wrong
   * @param {readonly Refused[]} refused
   */
  #show(text, wrong, refused) {
    this.#said.textContent = text;
    say(byId('decide-trouble', HTMLElement), wrong);
    byId('decide-refused', HTMLElement).replaceChildren(...refusals(refused));
  }
}

/** @param {FateResponse<Decision>[]} pages */
function countOf(pages) {
  return pages.reduce((total, { changed }) => total + changed.length, 0);
}

/**
 * @param {readonly Refused[]} refused
 * @returns {HTMLElement[]}
 */
function refusals(refused) {
  if (refused.length === 0) return [];
  const rows = refused.map(({ id, reason }) => el('li', {}, el('code', {}, id), ` ${printable(reason)}`));
  return [
    el('h3', {}, `Left as they are: ${refused.length}`),
    el('ul', { class: 'refused', tabindex: '0', 'aria-label': 'Left as they are' }, ...rows),
  ];
}
