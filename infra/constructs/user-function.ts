import { Duration } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { type HandlerBundling, handlerCode } from './handler-code.ts';

/** Code of the user's for a function that is made or wired here. One of `entry`, `code` and `function` says what it is. */
export interface UserCode {
  /** Its source file, which exports `handler`. Bundled with the project's esbuild. */
  readonly entry?: string;
  /** Its code, bundled already: `index.mjs` exports `handler`. */
  readonly code?: lambda.Code;
  /** A function made elsewhere. It gets its settings, permissions and triggers, and keeps all else. */
  readonly function?: lambda.Function;
  /** How `entry` is bundled. @default - everything in one minified file */
  readonly bundling?: HandlerBundling;
  /** Beside Relaybox's own, which win. @default - none */
  readonly environment?: Record<string, string>;
}

/** The code of a function that is made here. Throws where neither `code` nor `entry` is there, or `entry` isn't. */
export function codeOf(what: string, { entry, code, bundling }: UserCode): lambda.Code {
  if (code !== undefined) return code;
  if (entry !== undefined) return handlerCode(entry, bundling);
  throw new Error(`${what} needs an entry, a code or a function`);
}

/** An asynchronous event, such as a sweep, that Lambda could not run for so long is dropped. Lambda's least. */
export const MAX_EVENT_AGE = Duration.seconds(60);

/**
 * What our own functions have too: Lambda neither repeats a failed run, nor keeps what it throttles for hours, nor cuts a
 * chain of messages, which has its own limit. What the function says of these itself stays.
 */
export function asWorker(fn: lambda.Function): lambda.Function {
  const resource = fn.node.defaultChild;
  if (resource instanceof lambda.CfnFunction) resource.recursiveLoop ??= lambda.RecursiveLoop.ALLOW;
  const configured = fn.node.findAll().some((child) => child instanceof lambda.CfnEventInvokeConfig);
  if (!configured) fn.configureAsyncInvoke({ retryAttempts: 0, maxEventAge: MAX_EVENT_AGE });
  return fn;
}
