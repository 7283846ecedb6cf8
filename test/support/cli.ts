import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../cli/main.ts', import.meta.url));

/** What a run of the command line left behind. */
export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** The one line of JSON on stdout. */
  json(): unknown;
}

/** Runs the command line as a process of its own, without a terminal. */
export async function cli(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CliRun> {
  const child = spawn(process.execPath, [main, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, stdout, stderr, json: () => JSON.parse(stdout) as unknown };
}

/** Lambda's Invoke, as the SDK calls it, with a function of the test's own behind it. */
export interface FakeLambda {
  /** Environment that leads the SDK here. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Starts it. What the handler throws is answered as Lambda answers a function's error. */
export async function fakeLambda(
  handler: (name: string, payload: unknown) => Promise<unknown>,
): Promise<FakeLambda> {
  const server = createServer((request, response) => {
    void (async () => {
      let body = '';
      for await (const chunk of request) body += String(chunk);
      const name = decodeURIComponent(/functions\/([^/]+)\/invocations/.exec(request.url ?? '')?.[1] ?? '');
      if (name === 'absent') {
        response.writeHead(404, { 'x-amzn-errortype': 'ResourceNotFoundException' });
        response.end(JSON.stringify({ Message: 'Function not found: absent' }));
        return;
      }
      try {
        response.end(JSON.stringify(await handler(name, JSON.parse(body))));
      } catch (error) {
        const { name: errorType, message: errorMessage } = error as Error;
        response.setHeader('x-amz-function-error', 'Unhandled');
        response.end(JSON.stringify({ errorType, errorMessage, trace: [] }));
      }
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    env: {
      AWS_ENDPOINT_URL_LAMBDA: `http://127.0.0.1:${port}`,
      AWS_REGION: 'eu-central-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_MAX_ATTEMPTS: '1',
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
