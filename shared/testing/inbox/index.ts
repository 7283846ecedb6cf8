import { bind, type ContractCase } from '../case.ts';
import { claiming } from './claiming.ts';
import { concurrency } from './concurrency.ts';
import { foreign } from './foreign.ts';
import { handling } from './handling.ts';
import type { InboxHarness } from './harness.ts';
import { ingesting } from './ingesting.ts';
import { keys } from './keys.ts';
import { receipts } from './receipts.ts';

/**
 * What every inbox store must show. The suite knows no test runner:
 *
 * @example
 * ```ts
 * import { inboxStoreContract } from 'relaybox/testing';
 * import { describe, it } from 'node:test';
 *
 * describe('my inbox store', () => {
 *   for (const c of inboxStoreContract(setup)) it(c.name, c.run);
 * });
 * ```
 * @param setup makes a harness with empty tables; called once per case, which closes it
 */
export function inboxStoreContract(setup: () => Promise<InboxHarness>): ContractCase[] {
  return bind(
    [...ingesting, ...claiming, ...handling, ...keys, ...receipts, ...concurrency, ...foreign],
    setup,
  );
}
