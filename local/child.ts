/**
 * A function's process: loads the module named on the command line and runs its `handler` for each event it is
 * sent. It lives as a Lambda sandbox does: one event at a time, killed from outside when its time is up.
 */
import { pathToFileURL } from 'node:url';
import { type ChildMessage, describeError, type Invocation } from './child-protocol.ts';

type Handler = (event: unknown, context: unknown) => unknown;

const say = (message: ChildMessage, then?: () => void): void => {
  if (process.connected) process.send?.(message, undefined, undefined, () => then?.());
};

// The host ends this process. Alone it has nothing to do, and must not outlive the host.
process.on('disconnect', () => process.exit(0));

const entry = process.argv[2] ?? '';

try {
  const module = (await import(pathToFileURL(entry).href)) as { handler?: Handler };
  const { handler } = module;
  if (typeof handler !== 'function') throw new TypeError(`${entry} exports no function named handler`);
  process.on('message', (message: Invocation) => {
    if (message.type === 'invoke') void run(handler, message);
  });
  say({ type: 'ready' });
} catch (error) {
  say({ type: 'init-error', error: describeError(error) }, () => process.exit(1));
}

async function run(handler: Handler, invocation: Invocation): Promise<void> {
  const { requestId, event } = invocation;
  try {
    const result = await handler(event, contextOf(invocation));
    say({ type: 'result', requestId, result: result === undefined ? null : result });
  } catch (error) {
    say({ type: 'error', requestId, error: describeError(error) });
  }
}

/** The context object that Lambda's runtime passes. */
function contextOf({ requestId, timeoutMs }: Invocation): Record<string, unknown> {
  const name = process.env['AWS_LAMBDA_FUNCTION_NAME'] ?? '';
  const end = Date.now() + timeoutMs;
  return {
    awsRequestId: requestId,
    functionName: name,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:${process.env['AWS_REGION']}:000000000000:function:${name}`,
    memoryLimitInMB: process.env['AWS_LAMBDA_FUNCTION_MEMORY_SIZE'],
    logGroupName: `/aws/lambda/${name}`,
    logStreamName: `local/${process.pid}`,
    callbackWaitsForEmptyEventLoop: true,
    getRemainingTimeInMillis: () => end - Date.now(),
  };
}
