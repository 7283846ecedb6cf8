import { FunctionProcess, type InvocationFailed } from './function-process.ts';
import { localAws } from './sqs.ts';

/** A function as deployed: its code, settings and size. */
export interface FunctionSpec {
  readonly name: string;
  /** Path of the module that exports `handler`. */
  readonly entry: string;
  /** Variables of its own; of the host's it gets none but the few a process needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** @default 256 */
  readonly memoryMb?: number;
  /** Events that may run at the same time, each in a process of its own. @default 1 */
  readonly concurrency?: number;
}

/** One invocation, for those who watch. */
export interface InvocationReport {
  readonly functionName: string;
  readonly event: unknown;
  readonly result?: unknown;
  readonly error?: InvocationFailed;
  readonly ms: number;
}

export interface HostOptions {
  /** A line that a function wrote to its output. */
  readonly onLog?: (functionName: string, line: string) => void;
  readonly onInvocation?: (report: InvocationReport) => void;
}

/** Runs functions as Lambda does: real processes that are kept warm, time out, run out of memory, and are replaced. */
export class FunctionHost {
  readonly #options: HostOptions;
  readonly #functions = new Map<string, HostedFunction>();

  constructor(options: HostOptions = {}) {
    this.#options = options;
  }

  /** Starts the function's processes and waits until each has loaded its code. */
  async add(spec: FunctionSpec): Promise<void> {
    const hosted = new HostedFunction(spec, this.#options);
    this.#functions.set(spec.name, hosted);
    await hosted.warm();
  }

  /** Runs one event, waiting for a free process where all are busy. */
  async invoke(name: string, event: unknown): Promise<unknown> {
    return await this.#get(name).invoke(event);
  }

  /** The function's living processes, those that run an event first: for faults. */
  pids(name: string): readonly number[] {
    return this.#get(name)
      .living()
      .flatMap(({ pid }) => (pid === undefined ? [] : [pid]));
  }

  /**
   * Kills one process of the function at once: by its process id, or by its name in the user agent of its requests.
   * The event it runs fails, and a new process takes its place. Answers false where there is no such process.
   */
  kill(name: string, which: number | string): boolean {
    const found = this.#get(name)
      .living()
      .find(({ pid, instance }) => which === pid || which === instance);
    found?.kill('SIGKILL');
    return found !== undefined;
  }

  /** Ends every process. Events that still run fail. */
  async stop(): Promise<void> {
    await Promise.all([...this.#functions.values()].map((hosted) => hosted.stop()));
  }

  #get(name: string): HostedFunction {
    const hosted = this.#functions.get(name);
    if (!hosted) throw new Error(`there is no function ${name}`);
    return hosted;
  }
}

/** One function's processes. */
class HostedFunction {
  readonly #spec: FunctionSpec;
  readonly #options: HostOptions;
  readonly #idle: FunctionProcess[] = [];
  readonly #busy = new Set<FunctionProcess>();
  readonly #queue: (() => void)[] = [];
  #started = 0;
  #stopped = false;

  constructor(spec: FunctionSpec, options: HostOptions) {
    this.#spec = spec;
    this.#options = options;
  }

  async warm(): Promise<void> {
    const all = Array.from({ length: this.#spec.concurrency ?? 1 }, () => this.#start());
    this.#idle.push(...all);
    await Promise.all(all.map((one) => one.ready()));
  }

  async invoke(event: unknown): Promise<unknown> {
    const sandbox = await this.#take();
    const began = performance.now();
    const report = (outcome: { result: unknown } | { error: InvocationFailed }): void =>
      this.#options.onInvocation?.({
        functionName: this.#spec.name,
        event,
        ms: performance.now() - began,
        ...outcome,
      });
    try {
      const result = await sandbox.invoke(event, this.#spec.timeoutMs);
      report({ result });
      return result;
    } catch (error) {
      report({ error: error as InvocationFailed });
      throw error;
    } finally {
      this.#giveBack(sandbox);
    }
  }

  living(): readonly FunctionProcess[] {
    return [...this.#busy, ...this.#idle].filter((one) => one.alive);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const wake of this.#queue.splice(0)) wake();
    await Promise.all([...this.#busy, ...this.#idle].map((one) => one.stop()));
  }

  #start(): FunctionProcess {
    const { name, entry, env } = this.#spec;
    const memoryMb = this.#spec.memoryMb ?? 256;
    this.#started += 1;
    const instance = `${name}.${this.#started}`;
    return new FunctionProcess({
      name,
      instance,
      entry,
      memoryMb,
      env: { ...processEnvironment(name, instance, memoryMb), ...env },
      onLog: (line) => this.#options.onLog?.(name, line),
    });
  }

  async #take(): Promise<FunctionProcess> {
    const limit = this.#spec.concurrency ?? 1;
    while (!this.#stopped && this.#busy.size >= limit) {
      await new Promise<void>((resolve) => this.#queue.push(resolve));
    }
    if (this.#stopped) throw new Error(`${this.#spec.name} is stopping`);
    let sandbox = this.#idle.shift();
    if (!sandbox?.alive) sandbox = this.#start();
    this.#busy.add(sandbox);
    return sandbox;
  }

  #giveBack(sandbox: FunctionProcess): void {
    this.#busy.delete(sandbox);
    if (!this.#stopped) {
      // A dead one is replaced at once, so that the next event finds it warm.
      this.#idle.push(sandbox.alive ? sandbox : this.#start());
    } else if (sandbox.alive) {
      void sandbox.stop();
    }
    this.#queue.shift()?.();
  }
}

/** What every function's process gets: nothing of the host's own settings, and no credentials but made-up ones. */
function processEnvironment(name: string, instance: string, memoryMb: number): Record<string, string> {
  const kept = ['PATH', 'HOME', 'TMPDIR', 'TEMP', 'TMP', 'TZ', 'LANG', 'SystemRoot'];
  const env: Record<string, string> = {};
  for (const key of kept) {
    const value = process.env[key];
    if (value !== undefined) env[key] = value;
  }
  return {
    ...env,
    AWS_REGION: localAws.region,
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_LAMBDA_FUNCTION_NAME: name,
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(memoryMb),
    POWERTOOLS_SERVICE_NAME: name,
    // The SDK puts it into its user agent: at the fault gate one can see which process a request comes from.
    AWS_SDK_UA_APP_ID: instance,
    NODE_NO_WARNINGS: '1',
  };
}
