/** What the host and a function's process say to each other, over Node's channel between parent and child. */

export interface Invocation {
  readonly type: 'invoke';
  readonly requestId: string;
  readonly event: unknown;
  readonly timeoutMs: number;
}

export type ChildMessage =
  /** The module is loaded and has a handler. */
  | { readonly type: 'ready' }
  /** The module couldn't be loaded; the process ends. */
  | { readonly type: 'init-error'; readonly error: FunctionError }
  | { readonly type: 'result'; readonly requestId: string; readonly result: unknown }
  | { readonly type: 'error'; readonly requestId: string; readonly error: FunctionError };

/** An error as Lambda reports it. */
export interface FunctionError {
  readonly errorType: string;
  readonly errorMessage: string;
  readonly trace: string;
}

/** Puts whatever was thrown in the form Lambda reports. */
export function describeError(error: unknown): FunctionError {
  if (error instanceof Error) {
    return { errorType: error.name, errorMessage: error.message, trace: error.stack ?? '' };
  }
  return { errorType: typeof error, errorMessage: String(error), trace: '' };
}
