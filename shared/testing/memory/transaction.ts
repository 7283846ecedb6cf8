import type { SqlExecutor } from '../../store/executor.ts';
import type { Transaction, TransactionLimits } from '../../store/inbox-store.ts';

/** What a handler gets as its transaction: it can write an effect, which is there once the transaction commits. */
export interface MemoryTx {
  write(effect: string): void;
}

/** A transaction of the in-memory inbox: what it does is remembered, and done at the commit. */
export class MemoryTransaction implements Transaction<MemoryTx> {
  readonly #limits: TransactionLimits;
  readonly #destroyed: () => void;
  readonly #atCommit: (() => void)[] = [];
  readonly #atEnd: (() => void)[] = [];
  #used = performance.now();
  #over = false;
  #committed = false;
  #finish: () => void = () => undefined;
  /** Settles when the transaction has ended, for those who wait for it. */
  readonly ended = new Promise<void>((resolve) => {
    this.#finish = resolve;
  });
  readonly tx: MemoryTx;
  readonly executor: SqlExecutor = {
    query: () => Promise.reject(new Error('the in-memory store runs no SQL')),
  };

  constructor(limits: TransactionLimits, write: (effect: string) => void, destroyed: () => void) {
    this.#limits = limits;
    this.#destroyed = destroyed;
    this.tx = {
      write: (effect) => this.later(() => write(effect)),
    };
  }

  /** Remembers a change for the commit, and how to let go of what it holds where there is none. */
  later(work: () => void, atEnd?: () => void): void {
    this.#alive();
    this.#atCommit.push(work);
    if (atEnd) this.#atEnd.push(atEnd);
  }

  /** Throws where the transaction has ended, by itself too: one left idle for too long is rolled back. */
  #alive(): void {
    const idle = performance.now() - this.#used > this.#limits.idleMs;
    if (idle) this.#end();
    if (this.#over) throw new Error('the transaction has ended');
    this.#used = performance.now();
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    for (const work of this.#atEnd) work();
    this.#finish();
  }

  /** Whether it ended with a commit. */
  get committed(): boolean {
    return this.#committed;
  }

  async commit(): Promise<void> {
    this.#alive();
    for (const work of this.#atCommit) work();
    this.#committed = true;
    this.#end();
  }

  async rollback(): Promise<void> {
    this.#end();
  }

  async destroy(): Promise<void> {
    this.#destroyed();
    this.#end();
  }
}
