/** Shows where the demo is: a living line at a terminal, one line per phase elsewhere. Everything goes to standard error. */
export class Progress {
  readonly #out: NodeJS.WriteStream;
  #phase = '';
  #began = 0;

  constructor(out: NodeJS.WriteStream = process.stderr) {
    this.#out = out;
  }

  /** Begins a phase, and ends the one before it. */
  phase(name: string): void {
    this.#finish();
    this.#phase = name;
    this.#began = performance.now();
    if (this.#out.isTTY) this.update('');
    else this.#out.write(`· ${name}\n`);
  }

  /** What is new within the phase. */
  update(text: string): void {
    if (this.#out.isTTY && this.#phase !== '') this.#replace(`· ${this.#phase}  ${text}`);
  }

  /** Something worth keeping on the screen. */
  note(text: string): void {
    if (this.#out.isTTY) this.#replace('');
    this.#out.write(`  ${text}\n`);
  }

  end(): void {
    this.#finish();
    this.#phase = '';
  }

  #finish(): void {
    if (this.#phase === '' || !this.#out.isTTY) return;
    const seconds = ((performance.now() - this.#began) / 1000).toFixed(1);
    this.#replace(`✔ ${this.#phase}  ${seconds} s\n`);
  }

  #replace(text: string): void {
    // Cut to the width: a wrapped line could not be taken back.
    const line = text.endsWith('\n') ? text : text.slice(0, (this.#out.columns ?? 80) - 1);
    this.#out.write(`\r\u001b[2K${line}`);
  }
}
