import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type HandlerBundling, handlerCode } from '../../infra/constructs/handler-code.ts';

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

describe('handlers’ code', () => {
  let folder: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'relaybox-handlers-'));
    for (const name of ['order-placed', 'order-cancelled']) {
      const code = `export const handler = async (event: unknown) => ({ from: '${name}', event });`;
      writeFileSync(join(folder, `${name}.ts`), code);
    }
  });

  afterAll(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  /** Synthesises one function for each, and answers the code that each got. */
  function deployed(...handlers: readonly (readonly [string, HandlerBundling?])[]): string[] {
    const app = new App({ outdir: mkdtempSync(join(folder, 'cdk.out-')) });
    const stack = new Stack(app, 'Handlers');
    const functions = handlers.map(
      ([name, bundling], index) =>
        new lambda.Function(stack, `Handler${index}`, {
          code: handlerCode(join(folder, `${name}.ts`), bundling),
          handler: 'index.handler',
          runtime: lambda.Runtime.NODEJS_24_X,
        }),
    );
    const { directory, stacks } = app.synth();
    const { Resources: resources } = stacks[0]?.template ?? {};
    return functions.map((fn) => {
      const id = stack.getLogicalId(fn.node.defaultChild as lambda.CfnFunction);
      const [hash] = String(resources[id].Properties.Code.S3Key).split('.');
      return readFileSync(join(directory, `asset.${hash}`, 'index.mjs'), 'utf8');
    });
  }

  it('is each its own where two entries stand in one folder', () => {
    const [placed, cancelled] = deployed(['order-placed'], ['order-cancelled']);
    expect(placed).toContain('order-placed');
    expect(placed).not.toContain('order-cancelled');
    expect(cancelled).toContain('order-cancelled');
  });

  it('is built as each is told to, where two share an entry', () => {
    const [minified, plain] = deployed(['order-placed'], ['order-placed', { minify: false }]);
    expect(plain?.length).toBeGreaterThan(minified?.length ?? 0);
  });

  it('is the same asset in every synth', () => {
    expect(deployed(['order-placed'])).toEqual(deployed(['order-placed']));
  });
});
