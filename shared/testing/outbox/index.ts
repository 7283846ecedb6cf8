import { bind, type ContractCase } from '../case.ts';
import { adding } from './adding.ts';
import { concurrency } from './concurrency.ts';
import { ending } from './ending.ts';
import { foreign } from './foreign.ts';
import type { OutboxHarness } from './harness.ts';
import { keys } from './keys.ts';
import { lanes } from './lanes.ts';
import { leasing } from './leasing.ts';
import { reading } from './reading.ts';
import { settling } from './settling.ts';

/**
 * What every outbox store must show. The suite knows no test runner:
 *
 * @example
 * ```ts
 * import { outboxStoreContract } from 'relaybox/testing';
 * import { describe, it } from 'node:test';
 *
 * describe('my outbox store', () => {
 *   for (const c of outboxStoreContract(setup)) it(c.name, c.run);
 * });
 * ```
 * @param setup makes a harness with empty tables; called once per case, which closes it
 */
export function outboxStoreContract(setup: () => Promise<OutboxHarness>): ContractCase[] {
  return bind(
    [
      ...adding,
      ...leasing,
      ...reading,
      ...settling,
      ...ending,
      ...keys,
      ...lanes,
      ...concurrency,
      ...foreign,
    ],
    setup,
  );
}
