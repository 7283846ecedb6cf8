import { spawn } from 'node:child_process';
import { type IncomingHttpHeaders, request } from 'node:http';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../cli/main.ts', import.meta.url));

/** An answer of the console, read to its end. */
export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What is sent; a header of undefined is left out. */
export interface Sent {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
}

/** A browser that has come in. */
export interface Visitor {
  readonly base: string;
  readonly cookie: string;
  /** The answer to the link. */
  readonly entered: Answer;
  get(path: string): Promise<Answer>;
  /** A request as the page sends it, but for the headers that are given. A text is sent as it is. */
  post(request: unknown, headers?: Sent['headers']): Promise<Answer>;
  /** The same, and its answer; throws where it is refused. */
  ask<Response>(request: unknown): Promise<Response>;
}

/** A console that runs as a process of its own. */
export interface ConsoleProcess {
  /** The link that it printed. */
  readonly url: URL;
  /** All that it wrote so far, on both streams. */
  output(): string;
  /** Sends exactly this, with the path as it is. */
  send(path: string, sent?: Sent): Promise<Answer>;
  /** Sends a signal, and answers the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Starts `relaybox console --json`, and waits for its link. */
export async function startConsoleProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<ConsoleProcess> {
  const child = spawn(process.execPath, [main, 'console', '--json', ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk);
      if (stdout.includes('\n')) resolve();
    });
    void ended.then((code) => reject(new Error(`the console ended with ${code}: ${stderr}`)));
  });
  const url = new URL((JSON.parse(stdout) as { readonly url: string }).url);
  return {
    url,
    output: () => stdout + stderr,
    send: (path, sent = {}) => send(url, path, sent),
    async stop(signal = 'SIGINT') {
      child.kill(signal);
      return await ended;
    },
  };
}

/** Follows the link, and keeps the cookie. */
export async function enter({ url, send }: ConsoleProcess): Promise<Visitor> {
  const base = url.pathname;
  const entered = await send(base + url.search);
  const cookie = (entered.headers['set-cookie']?.[0] ?? '').split(';')[0] ?? '';
  const own = { origin: url.origin, 'content-type': 'application/json', cookie };
  const post: Visitor['post'] = (request, headers = {}) =>
    send(`${base}requests`, {
      method: 'POST',
      headers: { ...own, ...headers },
      body: typeof request === 'string' ? request : JSON.stringify(request),
    });
  return {
    base,
    cookie,
    entered,
    post,
    get: (path) => send(path, { headers: { cookie } }),
    async ask<Response>(request: unknown) {
      const { status, body } = await post(request);
      if (status !== 200) throw new Error(`the console answered ${status}: ${body}`);
      return JSON.parse(body) as Response;
    },
  };
}

async function send(url: URL, path: string, { method = 'GET', headers = {}, body }: Sent): Promise<Answer> {
  const given = Object.entries(headers).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return await new Promise((resolve, reject) => {
    // Not `fetch`, which would set Host and Origin itself and tidy the path.
    const sent = request(
      { host: url.hostname, port: url.port, path, method, headers: Object.fromEntries(given) },
      (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk) => {
          text += String(chunk);
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
