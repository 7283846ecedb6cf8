/** `npm run demo`: a bad day, survived. Exit code 0 only if the conservation law held. */
import { Cleanup } from '../cleanup.ts';
import { explain, requireNode, UsageError } from '../errors.ts';
import { onStopSignal } from '../stop-signals.ts';
import { badDay } from './bad-day.ts';
import { readOptions, usage } from './options.ts';
import { Progress } from './progress.ts';
import { lawHolds, toJson, toText } from './report.ts';

/** Ended by Ctrl-C. */
class Interrupted extends Error {}

async function main(): Promise<number> {
  requireNode();
  const options = readOptions(process.argv.slice(2));
  if (options.help) {
    console.log(usage);
    return 0;
  }
  const cleanup = new Cleanup();
  const progress = new Progress();
  const interrupted = new Promise<never>((_, reject) => {
    onStopSignal(() => {
      progress.note('stopping (again to force) …');
      reject(new Interrupted());
    });
  });
  try {
    const running = badDay(options, cleanup, progress);
    // Interrupted, it fails later, when what it works with is taken away: nobody asks for that error any more.
    running.catch(() => undefined);
    const outcome = await Promise.race([running, interrupted]);
    console.log(options.json ? toJson(outcome) : toText(outcome));
    return lawHolds(outcome) ? 0 : 1;
  } finally {
    await cleanup.run();
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    if (error instanceof Interrupted) process.exit(130);
    console.error(explain(error));
    process.exit(error instanceof UsageError ? 2 : 1);
  },
);
