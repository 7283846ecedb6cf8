import { ConfigurationError } from '../../message/errors.ts';

/** The unique index that the seed made on its inbox. */
export interface SeedIndex {
  /** The inbox's table and the index's columns, for people. */
  readonly table: string;
  readonly columns: string;
  /** Its name, where it stands. */
  find(): Promise<unknown>;
}

/**
 * On a table with the seed's unique index a second consumer's copy of a message would pass for a duplicate, and be lost:
 * the function made here throws `ConfigurationError` where one of the consumers isn't the default. Once the index is gone
 * nobody brings it back, so that answer is kept.
 */
export function secondConsumerCheck(index: SeedIndex): (consumers: readonly string[]) => Promise<void> {
  let gone = false;
  return async (consumers) => {
    const second = consumers.find((consumer) => consumer !== '');
    if (gone || second === undefined) return;
    const name = await index.find();
    gone = name === undefined;
    if (gone) return;
    throw new ConfigurationError(
      `consumer "${second}" can't share ${index.table}: its unique index ${String(name)} on ${index.columns} would swallow this consumer's copies. Use the default consumer, or replace the index with "relaybox migrate --replace-seed-identity"`,
    );
  };
}
