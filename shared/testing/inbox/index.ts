import { bind, type ContractCase } from '../case.ts';
import { claiming } from './claiming.ts';
import { concurrency } from './concurrency.ts';
import { foreign } from './foreign.ts';
import { handling, idling } from './handling.ts';
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
 * @param options `keepsIdleTransactions` leaves out what no store can show whose server ends no idle transaction: SQL Server
 */
export function inboxStoreContract(
  setup: () => Promise<InboxHarness>,
  { keepsIdleTransactions = false }: { readonly keepsIdleTransactions?: boolean } = {},
): ContractCase[] {
  const idle = keepsIdleTransactions ? [] : idling;
  return bind(
    [...ingesting, ...claiming, ...handling, ...idle, ...keys, ...receipts, ...concurrency, ...foreign],
    setup,
  );
}
