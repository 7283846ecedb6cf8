import { byId } from './dom.js';

/** A dialog of the page. Its close buttons and Escape close it, unless it is busy: then it stays until the work is done. */
export class Dialog {
  #dialog;
  #busy = false;

  /** @param {string} id */
  constructor(id) {
    this.#dialog = byId(id, HTMLDialogElement);
    for (const close of this.#closers()) close.addEventListener('click', () => this.close());
    this.#dialog.addEventListener('cancel', (event) => {
      if (this.#busy) event.preventDefault();
    });
    this.#dialog.addEventListener('close', () => this.closed());
  }

  open() {
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  close() {
    this.#dialog.close();
  }

  /** Called when it has been closed. */
  closed() {}

  /** @param {boolean} busy */
  setBusy(busy) {
    this.#busy = busy;
    this.#dialog.setAttribute('aria-busy', String(busy));
    for (const close of this.#closers()) close.toggleAttribute('disabled', busy);
  }

  #closers() {
    return this.#dialog.querySelectorAll('[data-close]');
  }
}
