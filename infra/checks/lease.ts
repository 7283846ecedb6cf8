import { defaults } from '../../shared/delivery/defaults.ts';
import type { DeploymentFacts, FunctionFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { duration, durationCode } from './words.ts';

const { pass, fail, unknown } = answers('lease');

/** What one round of publishing may take: two attempts of the SDK, each connecting for 3 s and waiting for 5 s. */
const PUBLISH_ROUND_SECONDS = 2 * (3 + 5);

/**
 * A lease that ends before its holder does gives the message to another worker while the first still runs: the second
 * then does the work, and the first's is rolled back by its token, every time anew.
 */
export function checkLease(facts: DeploymentFacts): Finding[] {
  return facts.functions.flatMap((each) => {
    const { lease } = each;
    if (lease.kind === 'none') return [];
    return [lease.kind === 'extended' ? extended(each.id, lease.seconds) : invocation(each, lease)];
  });
}

function invocation(
  each: FunctionFacts,
  lease: { readonly minimumSeconds: number; readonly marginSeconds: number },
): Finding {
  if (each.timeoutSeconds === undefined) {
    return unknown(
      each.id,
      "The function's timeout is not known, so neither is whether the lease outlasts it",
      'addHandler(…, { timeout })',
    );
  }
  const seconds = Math.max(lease.minimumSeconds, each.timeoutSeconds + lease.marginSeconds);
  const needed = each.timeoutSeconds + defaults.leaseMarginSeconds;
  const sum = `the function's timeout of ${duration(each.timeoutSeconds)} + a margin of ${duration(defaults.leaseMarginSeconds)} = ${duration(needed)}`;
  return seconds < needed
    ? fail(
        each.id,
        `The lease on a message is ${duration(seconds)}, shorter than ${sum}`,
        `set RELAYBOX_LEASE_MARGIN_SECONDS to ${defaults.leaseMarginSeconds} or more in its environment, or RELAYBOX_MESSAGE_LEASE_SECONDS to ${needed} or more, or its timeout to ${durationCode(Math.max(1, seconds - defaults.leaseMarginSeconds))} or less`,
      )
    : pass(each.id, `The lease on a message is ${duration(seconds)}, at least ${sum}`);
}

function extended(id: string, seconds: number): Finding {
  const needed = PUBLISH_ROUND_SECONDS + defaults.leaseMarginSeconds;
  const sum = `one round of publishing of at most ${duration(PUBLISH_ROUND_SECONDS)} + a margin of ${duration(defaults.leaseMarginSeconds)} = ${duration(needed)}`;
  return seconds < needed
    ? fail(
        id,
        `The lease on a bucket is ${duration(seconds)}, shorter than ${sum}`,
        `set relay: { lease: ${durationCode(needed)} } or more`,
      )
    : pass(id, `The lease on a bucket is ${duration(seconds)}, at least ${sum}`);
}
