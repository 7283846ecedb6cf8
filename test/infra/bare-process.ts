import { spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join } from 'node:path';

/** What became of one invocation. */
export interface Outcome {
  readonly importMs: number;
  readonly result?: unknown;
  readonly error?: string;
}

/** Imports a bundle and calls its handler, in a process that has nothing but Node. */
const CALLER = `
const started = performance.now();
const { handler } = await import(process.argv[1]);
const importMs = Math.round(performance.now() - started);
const context = { awsRequestId: 'r', functionName: 'f', getRemainingTimeInMillis: () => 10_000 };
let outcome;
try {
  outcome = { importMs, result: await handler(JSON.parse(process.argv[2]), context) };
} catch (error) {
  outcome = { importMs, error: String(error) };
}
process.stdout.write('OUTCOME ' + JSON.stringify(outcome) + '\\n', () => process.exit(0));
`;

/** Invokes a bundle's `index.mjs` in a process of its own. */
export interface BareInvocation {
  /** The bundle's folder. */
  readonly bundle: string;
  /** An empty folder that it is copied to, so that nothing installed stands above it. */
  readonly alone: string;
  readonly event: unknown;
  readonly env: Readonly<Record<string, string>>;
}

/** Rejects where the process answers nothing, with what it wrote. */
export function invokeBare({ bundle, alone, event, env }: BareInvocation): Promise<Outcome> {
  cpSync(bundle, alone, { recursive: true });
  const child = spawn(
    process.execPath,
    ['--input-type=module', '-e', CALLER, join(alone, 'index.mjs'), JSON.stringify(event)],
    { cwd: alone, env: { AWS_REGION: 'eu-central-1', ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  return new Promise((resolve, reject) => {
    let output = '';
    let errors = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      errors += chunk;
    });
    child.on('error', reject);
    child.on('close', () => {
      const line = output.split('\n').find((text) => text.startsWith('OUTCOME '));
      if (line === undefined) reject(new Error(`${bundle} answered nothing: ${errors || output}`));
      else resolve(JSON.parse(line.slice('OUTCOME '.length)));
    });
  });
}
