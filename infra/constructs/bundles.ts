import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import type { Engine } from './engine.ts';

/** Relaybox's own functions. */
export type FunctionName = 'relay' | 'ingest' | 'maintain' | 'migrate';

// The source stands at infra/constructs, what is built of it at dist/infra/constructs: the bundles are in dist for both.
const FOLDER = import.meta.url.endsWith('.ts') ? '../../dist/bundles/' : '../../bundles/';

/** The folder of a function's bundle. Bundles are built with the package, so that a deployment needs no bundler for them. */
export function bundleFolder(engine: Engine, name: FunctionName): string {
  const folder = fileURLToPath(new URL(`${FOLDER}${engine.name}/${name}`, import.meta.url));
  if (existsSync(`${folder}/index.mjs`)) return folder;
  throw new Error(
    `There is no bundle of ${name} for ${engine.name} at ${folder}: npm run build:functions makes it`,
  );
}

/** A function's code. The same sources make the same bytes, so that a deployment changes only what has changed. */
export function bundle(engine: Engine, name: FunctionName): lambda.Code {
  return lambda.Code.fromAsset(bundleFolder(engine, name));
}
