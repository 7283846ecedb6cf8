import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ChildMessage, FunctionError, Invocation } from './child-protocol.ts';

/** How one process of a function is started. */
export interface ProcessSettings {
  readonly name: string;
  /** Tells this process from the function's others. */
  readonly instance: string;
  /** Path of the module that exports `handler`. */
  readonly entry: string;
  readonly env: Readonly<Record<string, string>>;
  readonly memoryMb: number;
  readonly onLog: (line: string) => void;
}

/** An invocation did not end with a result: the function threw, ran out of time, or its process ended. */
export class InvocationFailed extends Error {
  readonly errorType: string;
  readonly trace: string;

  constructor(functionName: string, error: FunctionError) {
    super(`${functionName}: ${error.errorType}: ${error.errorMessage}`);
    this.name = 'InvocationFailed';
    this.errorType = error.errorType;
    this.trace = error.trace;
  }
}

/** How the process ended, in the words Lambda uses. */
interface Ending {
  readonly error: FunctionError;
}

/** One sandbox: a real process, which runs one event at a time and really dies. */
export class FunctionProcess {
  readonly #settings: ProcessSettings;
  readonly #child: ChildProcess;
  readonly #ready: Promise<void>;
  readonly #ended: Promise<Ending>;
  #initError: FunctionError | undefined;
  #waiting: ((message: ChildMessage) => void) | undefined;
  #alive = true;

  constructor(settings: ProcessSettings) {
    this.#settings = settings;
    this.#child = fork(fileURLToPath(new URL('./child.ts', import.meta.url)), [settings.entry], {
      execPath: process.execPath,
      execArgv: [`--max-old-space-size=${settings.memoryMb}`],
      env: settings.env,
      // A group of its own: Ctrl-C in the terminal must reach the host only, which stops its functions in order.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      if (stream) createInterface({ input: stream }).on('line', settings.onLog);
    }
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', (error) => resolve(this.#end('Runtime.StartError', error.message)));
      this.#child.once('exit', (code, signal) => {
        const how = signal ? `signal: ${signal}` : `exit status ${code}`;
        resolve(this.#end('Runtime.ExitError', `Runtime exited with error: ${how}`));
      });
    });
    this.#ready = new Promise((resolve, reject) => {
      this.#child.on('message', (message: ChildMessage) => {
        if (message.type === 'ready') resolve();
        else if (message.type === 'init-error') this.#initError = message.error;
        else this.#waiting?.(message);
      });
      void this.#ended.then(({ error }) => reject(new InvocationFailed(settings.name, error)));
    });
    // Whoever invokes awaits it; a process that nobody invokes must not end the host by an unhandled rejection.
    this.#ready.catch(() => undefined);
  }

  get instance(): string {
    return this.#settings.instance;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Resolves once the module is loaded. */
  async ready(): Promise<void> {
    await this.#ready;
  }

  /** Runs one event. A process that runs out of time is killed; it runs no other. */
  async invoke(event: unknown, timeoutMs: number): Promise<unknown> {
    await this.#ready;
    const requestId = randomUUID();
    const answer = new Promise<ChildMessage>((resolve) => {
      this.#waiting = (message) => {
        if ('requestId' in message && message.requestId === requestId) resolve(message);
      };
    });
    const invocation: Invocation = { type: 'invoke', requestId, event, timeoutMs };
    // A send to a process that has just died fails; its exit says so too, and is what the caller gets.
    this.#child.send(invocation, () => undefined);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), timeoutMs);
    });
    const first = await Promise.race([answer, this.#ended, late]);
    clearTimeout(timer);
    this.#waiting = undefined;
    if (first === 'late') {
      this.kill('SIGKILL');
      await this.#ended;
      throw this.#failure({
        errorType: 'Sandbox.Timedout',
        errorMessage: `Task timed out after ${(timeoutMs / 1000).toFixed(2)} seconds`,
        trace: '',
      });
    }
    if ('type' in first && first.type === 'result') return first.result;
    if ('error' in first) throw this.#failure(first.error);
    throw new Error(`unexpected answer of ${this.#settings.name}`);
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** SIGTERM, and SIGKILL after the grace. Resolves once the process is gone. */
  async stop(graceMs = 2000): Promise<void> {
    if (!this.#alive) return;
    this.kill('SIGTERM');
    const timer = setTimeout(() => this.kill('SIGKILL'), graceMs);
    await this.#ended;
    clearTimeout(timer);
  }

  #end(errorType: string, errorMessage: string): Ending {
    this.#alive = false;
    return { error: this.#initError ?? { errorType, errorMessage, trace: '' } };
  }

  #failure(error: FunctionError): InvocationFailed {
    return new InvocationFailed(this.#settings.name, error);
  }
}
