import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { AssetHashType, DockerImage } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { bundlingOptions } from './bundling.ts';

/** How a handler's entry file is bundled. */
export interface HandlerBundling {
  /** Modules that the bundle leaves out, since a layer brings them. @default - none: the bundle carries all that it uses */
  readonly externalModules?: string[];
  /** @default true */
  readonly minify?: boolean;
  /** With `NODE_OPTIONS=--enable-source-maps`, stack traces name the lines of the source. @default false */
  readonly sourceMap?: boolean;
  /** Texts to be replaced in the source, such as `process.env.STAGE`. @default - none */
  readonly define?: Record<string, string>;
}

/** What of esbuild is used here. */
interface Bundler {
  buildSync(options: Record<string, unknown>): unknown;
}

/**
 * The code of a handler, bundled of its entry file with the project's own esbuild. Without Docker, and without a lock
 * file to be found; the asset's hash is that of the result, so that the same result deploys nothing.
 */
export function handlerCode(entry: string, bundling: HandlerBundling = {}): lambda.Code {
  const file = resolve(entry);
  if (!existsSync(file)) throw new Error(`There is no handler at ${file} (entry is ${entry})`);
  return lambda.Code.fromAsset(dirname(file), {
    assetHashType: AssetHashType.OUTPUT,
    bundling: {
      // Never used: the local bundler below does the work or throws.
      image: DockerImage.fromRegistry('none'),
      // The CDK builds equal assets of an app once, and what it compares is this: without the file's name, all handlers of
      // one folder would get the code of the first.
      environment: { ENTRY: file, BUNDLING: JSON.stringify(bundling) },
      local: {
        tryBundle: (outputDirectory) => {
          bundle(file, outputDirectory, bundling);
          return true;
        },
      },
    },
  });
}

function bundle(entry: string, folder: string, options: HandlerBundling): void {
  esbuild(entry).buildSync({
    entryPoints: [entry],
    outfile: join(folder, 'index.mjs'),
    ...bundlingOptions,
    minify: options.minify ?? true,
    sourcemap: options.sourceMap ?? false,
    external: [...bundlingOptions.external, ...(options.externalModules ?? [])],
    define: options.define ?? {},
    // Paths of the machine that builds must not be in what it builds.
    absWorkingDir: dirname(entry),
  });
}

/** The project's esbuild, or whichever Relaybox finds beside itself. */
function esbuild(entry: string): Bundler {
  for (const from of [entry, join(process.cwd(), 'package.json'), import.meta.url]) {
    try {
      return createRequire(from)('esbuild') as Bundler;
    } catch (error) {
      if (!(error instanceof Error) || !('code' in error) || error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new Error(
    `To bundle ${entry}, esbuild is needed: npm install --save-dev esbuild. Or bundle it yourself, and give a \`code\` or a \`function\` instead of the entry`,
  );
}
