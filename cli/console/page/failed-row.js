import { button, el } from './dom.js';
import { instant, laneText, printable, shortened } from './format.js';

/** @import { FailedMessage } from '../../../shared/operations/responses.ts' */

/**
 * A row of the table of Failed messages.
 * @param {FailedMessage} message
 * @param {{ select(id: string, selected: boolean): void, show(id: string): void }} actions
 */
export function failedRow(message, { select, show }) {
  const { id } = message;
  const check = el('input', {
    type: 'checkbox',
    value: id,
    'aria-label': `Select ${id}`,
    'data-focus': `select ${id}`,
  });
  check.addEventListener('change', () => select(id, check.checked));
  return el(
    'tr',
    {},
    el('td', {}, check),
    el(
      'td',
      { class: 'id' },
      button(id, { class: 'link', focus: `show ${id}` }, () => show(id)),
    ),
    el('td', { class: 'when' }, instant(message.failedAt)),
    el('td', {}, laneText(message.lane)),
    el('td', {}, printable(message.messageType)),
    el('td', {}, ...keyOf(message)),
    el('td', { class: 'number' }, String(message.retryCount)),
    el('td', { class: 'reason' }, shortened(message.lastError, 300)),
  );
}

/** @param {FailedMessage} message */
function keyOf({ partitionKey, blocksKey }) {
  if (partitionKey === null) return ['–'];
  const blocks = blocksKey ? el('span', { class: 'tag problem' }, 'blocked') : null;
  return [blocks, ` ${shortened(partitionKey, 60)}`];
}
