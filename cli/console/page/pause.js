import { ask } from './api.js';
import { Dialog } from './dialog.js';
import { byId, messageOf, say } from './dom.js';
import { instant, laneFields, laneKey, laneText, printable } from './format.js';
import { touched, unfinishedText } from './lanes.js';

/** @import { LaneName } from '../../../shared/operations/requests.ts' */
/** @import { LaneStatus, StatusResponse } from '../../../shared/operations/responses.ts' */
/** @import { About } from '../server.ts' */

/** The dialog that stops a lane, or lets it go on. */
export class Pause extends Dialog {
  #done;
  #box = byId('pause-box', HTMLSelectElement);
  #name = byId('pause-name', HTMLInputElement);
  #consumer = byId('pause-consumer', HTMLInputElement);
  #fields = byId('pause-fields', HTMLFieldSetElement);
  #reason = byId('pause-reason', HTMLTextAreaElement);
  #by = byId('pause-by', HTMLInputElement);
  #seconds = byId('pause-seconds', HTMLSelectElement);
  #go = byId('pause-go', HTMLButtonElement);
  /** Null: the one that the fields name. @type {LaneStatus | null} */
  #lane = null;
  /** @type {'pause' | 'resume'} */
  #command = 'pause';
  #title = '';

  /**
   * @param {About} about
   * @param {(said: string) => void} done
   */
  constructor(about, done) {
    super('pause');
    this.#done = done;
    this.#by.value = about.by;
    this.#box.addEventListener('change', () => {
      byId('pause-consumer-label', HTMLElement).hidden = this.#box.value === 'outbox';
    });
    byId('pause-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      if (!this.#go.disabled) void this.#run();
    });
  }

  /**
   * @param {'pause' | 'resume'} command
   * @param {LaneStatus | null} lane null: one that is to be named
   */
  begin(command, lane) {
    const verb = command === 'pause' ? 'Pause' : 'Resume';
    const title = `${verb} ${lane === null ? 'a lane' : laneText(lane.lane)}`;
    // A reason belongs to the lane that it was written for.
    if (title !== this.#title) this.#reason.value = '';
    this.#title = title;
    this.#command = command;
    this.#lane = lane;
    byId('pause-title', HTMLElement).textContent = title;
    say(byId('pause-said', HTMLElement), lane === null ? '' : meaning(command, lane));
    byId('pause-lane', HTMLElement).hidden = lane !== null;
    this.#fields.hidden = command === 'resume';
    this.#fields.disabled = command === 'resume';
    this.#name.required = lane === null;
    say(byId('pause-trouble', HTMLElement), '');
    this.#go.textContent = lane === null ? title : `${verb} ${touched(lane)}`;
    this.open();
    if (command === 'resume') this.#go.focus();
    else (lane === null ? this.#name : this.#reason).focus();
  }

  async #run() {
    const lane = this.#lane?.lane ?? this.#typedLane();
    this.#setUnderWay(true);
    try {
      const said = this.#command === 'pause' ? await this.#pause(lane) : await resume(lane);
      this.#reason.value = '';
      this.#setUnderWay(false);
      this.close();
      this.#done(said);
    } catch (error) {
      this.#setUnderWay(false);
      say(byId('pause-trouble', HTMLElement), messageOf(error));
    }
  }

  /** @param {LaneName} lane */
  async #pause(lane) {
    const seconds = this.#seconds.value === '' ? null : Number(this.#seconds.value);
    const [reason, by] = [this.#reason.value.trim(), this.#by.value.trim()];
    await ask({ command: 'pause', ...laneFields(lane), reason, by, seconds });
    return await pausedText(lane);
  }

  /** @returns {LaneName} */
  #typedLane() {
    const typed = this.#name.value.trim();
    if (this.#box.value === 'outbox') return { box: 'outbox', destination: typed };
    return { box: 'inbox', messageType: typed, consumer: this.#consumer.value.trim() };
  }

  /** @param {boolean} underWay */
  #setUnderWay(underWay) {
    this.setBusy(underWay);
    this.#go.disabled = underWay;
  }
}

/**
 * @param {'pause' | 'resume'} command
 * @param {LaneStatus} status
 */
function meaning(command, status) {
  if (command === 'pause') {
    return `It has ${unfinishedText(status)}. What is on the wire or with a handler ends; nothing new is taken; nothing is lost.`;
  }
  const { pause } = status;
  return `Paused by ${printable(pause?.by ?? '?')} at ${instant(pause?.since ?? null)}: ${printable(pause?.reason ?? '')}. It has ${unfinishedText(status)}.`;
}

/**
 * The pause stands already: figures that can't be had must not make it look failed.
 * @param {LaneName} lane
 */
async function pausedText(lane) {
  const status = await ask({ command: 'status' }).catch(() => null);
  const empty = status !== null && isEmpty(status, lane);
  const slip = ' Nothing is in this lane now. See that its name is right: it is paused all the same.';
  return `${laneText(lane)} is paused.${empty ? slip : ''}`;
}

/** @param {LaneName} lane */
async function resume(lane) {
  const { changed } = await ask({ command: 'resume', ...laneFields(lane) });
  return changed ? `${laneText(lane)} goes on.` : `${laneText(lane)} was not paused.`;
}

/**
 * @param {StatusResponse} status
 * @param {LaneName} named
 */
function isEmpty({ lanes, more }, named) {
  const found = lanes.find(({ lane }) => laneKey(lane) === laneKey(named));
  if (found === undefined) return !more;
  const { due, waiting, held, leased, failed } = found;
  return [due, waiting, held, leased, failed].every(({ count }) => count === 0);
}
