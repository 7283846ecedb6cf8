import { DatabaseUnavailable, SchemaError } from '../shared/message/errors.ts';
import { RequestRefused } from '../shared/operations/errors.ts';
import type { Command as Name } from '../shared/operations/requests.ts';
import type { Responses } from '../shared/operations/responses.ts';
import { FunctionFailed, FunctionUnreachable } from './errors.ts';
import type { Request, Target } from './target.ts';

/** Asks the deployed function. The SDK takes region, credentials and endpoint from where it always does. */
export async function functionTarget<T>(name: string, work: (target: Target) => Promise<T>): Promise<T> {
  return await withFunction(name, (invoke) =>
    work({
      async ask<Command extends Name>(request: Request<Command>) {
        const answer = await invoke(request);
        // A function that takes the request for a plain event runs a cycle, and answers that.
        if ((answer as { readonly command?: unknown } | null)?.command !== request.command) {
          throw new FunctionFailed(
            `${name} did not answer "${request.command}": is it the maintain function, and of this version?`,
          );
        }
        return answer as Responses[Command];
      },
    }),
  );
}

/** Runs the work with a way to invoke the function and wait for its answer. */
export async function withFunction<T>(
  name: string,
  work: (invoke: (payload: unknown) => Promise<unknown>) => Promise<T>,
): Promise<T> {
  // Loaded only here: whoever works with a URL needs no SDK.
  const { InvokeCommand, LambdaClient } = await import('@aws-sdk/client-lambda');
  const client = new LambdaClient({});
  const invoke = async (payload: unknown): Promise<unknown> => {
    const command = new InvokeCommand({
      FunctionName: name,
      Payload: new TextEncoder().encode(JSON.stringify(payload)),
    });
    const output = await client.send(command).catch((error: unknown) => {
      const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
      throw new FunctionUnreachable(`function ${name} could not be invoked: ${said}`, { cause: error });
    });
    const text = output.Payload === undefined ? '' : new TextDecoder().decode(output.Payload);
    const answer = parsed(text);
    if (output.FunctionError === undefined) return answer;
    throw failure(name, answer);
  };
  try {
    return await work(invoke);
  } finally {
    client.destroy();
  }
}

/** The function's error under its own name, so that the exit code is the same as with a URL. */
function failure(name: string, answer: unknown): Error {
  const { errorType, errorMessage } = (answer ?? {}) as { errorType?: unknown; errorMessage?: unknown };
  const said = typeof errorMessage === 'string' ? errorMessage : JSON.stringify(answer);
  if (errorType === 'RequestRefused') return new RequestRefused(said);
  if (errorType === 'SchemaError') return new SchemaError(`${name}: ${said}`);
  if (errorType === 'DatabaseUnavailable') return new DatabaseUnavailable(`${name}: ${said}`);
  const type = typeof errorType === 'string' ? `${errorType}: ` : '';
  return new FunctionFailed(`${name} failed: ${type}${said}`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
