import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

/** What a process loads of the AWS SDK by importing an entry and making each kind of function with it. */
async function loaded(entry: string): Promise<string[]> {
  const url = new URL(`../../shared/lambda/${entry}/index.ts`, import.meta.url).href;
  const program = `
    import { registerHooks } from 'node:module';
    const seen = [];
    registerHooks({
      resolve(specifier, context, next) {
        const resolved = next(specifier, context);
        seen.push(resolved.url);
        return resolved;
      },
    });
    const { createRelay, inboxHandler, sqsConsumer, transactional } = await import('${url}');
    sqsConsumer({}, async () => undefined);
    inboxHandler({ messageType: 't' }, async () => undefined);
    transactional();
    createRelay();
    if (!seen.some((one) => one.endsWith('/sqs-consumer.ts'))) throw new Error('nothing was seen');
    console.log(JSON.stringify(seen.filter((one) => one.includes('/@aws-sdk/'))));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program]);
  return JSON.parse(stdout) as string[];
}

it.each(['postgres', 'sqlserver'])(
  'an application’s function on %s loads nothing of the AWS SDK before it needs it',
  async (entry) => {
    expect(await loaded(entry)).toEqual([]);
  },
);
