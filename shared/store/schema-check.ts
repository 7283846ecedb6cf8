import { SchemaError } from '../message/errors.ts';
import type { PlainNames } from './migration/record.ts';

/** What a database was found to be like. */
export interface SchemaReport {
  readonly version: number;
  /** The inbox has the seed's unique index (source, external message id): only the default consumer is accepted there. */
  readonly seedIdentity: boolean;
}

/** What a look at the catalog found. */
export interface SchemaFound {
  /** Versions that are complete. */
  readonly versions: readonly number[];
  /** Rights that the login lacks, as they stand between GRANT and TO. */
  readonly lacking: readonly string[];
  /** The login, quoted. */
  readonly login: string;
  readonly seedIdentity: boolean;
  /** The inbox has Relaybox's own unique index. */
  readonly identity: boolean;
}

/** This build's part of the judgement. */
export interface SchemaWanted {
  readonly plain: PlainNames;
  /** The migrations in their order; the first is version 1. */
  readonly files: readonly string[];
  /** The statement that makes Relaybox's own unique index on the inbox. */
  readonly createIdentity: string;
}

/** Throws `SchemaError` naming the migration, the grants or the index that is missing. */
export function schemaReport(
  found: SchemaFound,
  { plain, files, createIdentity }: SchemaWanted,
): SchemaReport {
  const missing = files.find((_, index) => !found.versions.includes(index + 1));
  if (missing !== undefined) throw migrationMissing(plain, missing);
  const { lacking, login } = found;
  if (lacking.length > 0) {
    const [first = ''] = lacking;
    const grants = lacking.map((grant) => `GRANT ${grant} TO ${login}`).join('; ');
    throw new SchemaError(
      `the login ${login} lacks ${lacking.length === 1 ? first : `${lacking.length} rights`}: run ${grants}`,
    );
  }
  if (!found.seedIdentity && !found.identity) {
    throw new SchemaError(
      `the inbox has no unique index, so that duplicates would be handled twice: run ${createIdentity}`,
    );
  }
  return { version: files.length, seedIdentity: found.seedIdentity };
}

/** The error of a schema that lacks a migration. */
export function migrationMissing(
  { schema, outboxTable, inboxTable }: PlainNames,
  file: string,
  options?: ErrorOptions,
): SchemaError {
  return new SchemaError(
    `schema "${schema}" (${outboxTable}, ${inboxTable}) lacks migration ${file}: run "relaybox migrate", or deploy, which runs it`,
    options,
  );
}

/** The error of a login that may not even look at the record of versions. `grants`: what would let it. */
export function lookRefused(cause: unknown, grants: readonly string[]): SchemaError {
  return new SchemaError(
    `the login may not look at the schema's version (${(cause as Error).message}): run ${grants.map((grant) => `GRANT ${grant} TO <login>`).join('; ')}`,
    { cause },
  );
}
