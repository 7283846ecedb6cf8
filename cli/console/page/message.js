import { ask } from './api.js';
import { Dialog } from './dialog.js';
import { button, byId, el, messageOf, say } from './dom.js';
import { counted, failures, instant, laneText, printable, printableLines } from './format.js';

/** @import { ShownMessage } from '../../../shared/operations/responses.ts' */
/** @import { Decision, Wanted } from './fate.js' */
/** @typedef {{ id: string } | { source: string, externalMessageId: string }} Identity */

/** One message with all that is known of it. Its payload is asked for only when somebody says so. */
export class Message extends Dialog {
  #decide;
  #body = byId('message-body', HTMLElement);
  /** @type {Identity | null} */
  #shown = null;
  #withPayload = false;

  /** @param {(wanted: Wanted) => void} decide */
  constructor(decide) {
    super('message');
    this.#decide = decide;
  }

  /** @param {Identity} identity */
  async show(identity) {
    this.#shown = identity;
    this.#withPayload = false;
    this.#body.replaceChildren();
    this.#trouble('');
    this.open();
    await this.load();
  }

  /** Reads it again, after something was decided. */
  async load() {
    const asked = this.#shown;
    if (asked === null) return;
    try {
      const { messages } = await ask({ command: 'show', ...asked, payload: this.#withPayload });
      if (asked !== this.#shown) return;
      this.#trouble(messages.length === 0 ? nothing(asked) : '');
      this.#body.replaceChildren(...messages.map((message) => this.#article(message)));
    } catch (error) {
      this.#trouble(messageOf(error));
    }
  }

  /** @override */
  closed() {
    this.#shown = null;
    this.#body.replaceChildren();
  }

  /** @param {ShownMessage} message */
  #article(message) {
    return el(
      'article',
      {},
      facts(message),
      text('last error', message.lastError && printableLines(message.lastError)),
      text('headers', message.headers === null ? null : JSON.stringify(message.headers, null, 2)),
      this.#payload(message),
      this.#decisions(message),
    );
  }

  /** @param {ShownMessage} message */
  #payload({ payload, payloadBytes }) {
    if (payload !== undefined) return text('payload', payload);
    return button(`Show the payload (${counted(payloadBytes, 'byte')})`, { focus: 'payload' }, () => {
      this.#withPayload = true;
      void this.load();
    });
  }

  /** @param {ShownMessage} message */
  #decisions({ id, lane, state }) {
    const of = laneText(lane);
    const wanted = { ids: [id], what: `message ${id} of ${of}`, of };
    /** @type {(command: Decision) => () => void} */
    const decide = (command) => () => this.#decide({ command, ...wanted });
    const requeue = button(`Requeue this message of ${of}…`, { focus: 'requeue' }, decide('requeue'));
    const danger = { focus: 'discard', class: 'danger' };
    const discard = button(`Discard this message of ${of}…`, danger, decide('discard'));
    const ended = state === 'Processed' || state === 'Discarded';
    return el('div', { class: 'bar' }, state === 'Failed' ? requeue : null, ended ? null : discard);
  }

  /** @param {string} said */
  #trouble(said) {
    say(byId('message-trouble', HTMLElement), said);
  }
}

/** @param {Identity} identity */
function nothing(identity) {
  const none = 'There is no such message: it may have been removed by retention.';
  // A sender's id is often a UUID too, and looks like a row's.
  return 'id' in identity ? `${none} If that is what the sender calls it, find it by source.` : none;
}

/** @param {ShownMessage} message */
function facts(message) {
  /** @type {[string, string | number | null][]} */
  const pairs = [
    ['id', message.id],
    ['lane', laneText(message.lane)],
    ['state', `${message.state}: ${message.situation}`],
    ['type', message.messageType],
    ['source', message.source],
    ['external id', message.externalMessageId],
    ['partition key', message.partitionKey],
    ['correlation id', message.correlationId],
    ['failed', failures(message.retryCount, message.maxRetries)],
    ['created', instant(message.createdAt)],
    ['next attempt', message.nextAttemptAt && instant(message.nextAttemptAt)],
    ['locked until', message.lockedUntil && instant(message.lockedUntil)],
    ['ended', message.endedAt && instant(message.endedAt)],
    ['sequence', message.sequence],
    ['bucket', message.bucket],
  ];
  const given = pairs.filter(([, value]) => value !== null);
  return el(
    'dl',
    {},
    ...given.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, printable(String(value)))]),
  );
}

/**
 * A longer text as it is.
 * @param {string} name
 * @param {string | null} value
 */
function text(name, value) {
  if (value === null) return null;
  return el(
    'div',
    { class: 'text' },
    el('h3', {}, name),
    el('pre', { tabindex: '0', 'aria-label': name }, value),
  );
}
