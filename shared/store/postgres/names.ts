import { ConfigurationError } from '../../message/errors.ts';
import { derivedName } from '../derived-name.ts';

/** Where Relaybox's tables are. The two big ones may be another program's. */
export interface PostgresTables {
  /** @default 'public' */
  readonly schema?: string;
  /** @default 'outbox_messages' */
  readonly outboxTable?: string;
  /** @default 'inbox_messages' */
  readonly inboxTable?: string;
}

/** Identifiers ready to stand in a statement: validated, quoted, qualified with the schema. */
export interface Names {
  readonly schema: string;
  readonly outbox: string;
  readonly outboxArchive: string;
  readonly inbox: string;
  readonly leases: string;
  readonly lanes: string;
  readonly keys: string;
  readonly inboxLanes: string;
  readonly receipts: string;
  readonly workers: string;
  readonly version: string;
  /**
   * An outbox row's bucket, over the columns of the only table in sight that has an id and a partition key.
   * The indexes are built over this very expression; a statement that writes it otherwise does not use them.
   */
  readonly bucket: string;
  /** The names as configured, not quoted: for the catalog's tables and for messages to people. */
  readonly plain: Required<PostgresTables>;
  /** What `{{name}}` stands for in the migrations. */
  readonly placeholders: Readonly<Record<string, string>>;
}

const MAX_BYTES = 63;

/** Resolves and checks the tables' names. Throws `ConfigurationError` for one that PostgreSQL would cut or misread. */
export function postgresNames(tables: PostgresTables = {}): Names {
  const plain = {
    schema: checked('schema', tables.schema ?? 'public'),
    outboxTable: checked('outboxTable', tables.outboxTable ?? 'outbox_messages'),
    inboxTable: checked('inboxTable', tables.inboxTable ?? 'inbox_messages'),
  };
  refuseClashes(plain);
  const schema = quoted(plain.schema);
  const within = (table: string): string => `${schema}.${quoted(table)}`;
  const names = {
    schema,
    outbox: within(plain.outboxTable),
    outboxArchive: within(derived('', plain.outboxTable, '_archive')),
    inbox: within(plain.inboxTable),
    leases: within('outbox_leases'),
    lanes: within('outbox_lanes'),
    keys: within('inbox_keys'),
    inboxLanes: within('inbox_lanes'),
    receipts: within('inbox_receipts'),
    workers: within('relaybox_workers'),
    version: within('relaybox_schema_version'),
    bucket: bucketOf(),
    plain,
  };
  const outboxSequence = within(derived('', plain.outboxTable, '_relaybox_seq'));
  const inboxSequence = within(derived('', plain.inboxTable, '_relaybox_seq'));
  return {
    ...names,
    placeholders: {
      schema,
      outbox: names.outbox,
      outbox_archive: names.outboxArchive,
      inbox: names.inbox,
      bucket: names.bucket,
      outbox_sequence: outboxSequence,
      outbox_sequence_literal: outboxSequence.replaceAll("'", "''"),
      inbox_sequence: inboxSequence,
      inbox_sequence_literal: inboxSequence.replaceAll("'", "''"),
      ...indexes('outbox_index', plain.outboxTable, outboxIndexes),
      ...indexes('inbox_index', plain.inboxTable, inboxIndexes),
      ...indexes('keys_index', 'inbox_keys', ['due', 'waiting']),
      ...indexes('receipts_index', 'inbox_receipts', ['age']),
    },
  };
}

const outboxIndexes = ['ready', 'waiting', 'blocking', 'claimed', 'failed', 'ended'];
const inboxIndexes = ['identity', 'ready', 'waiting', 'key', 'failed', 'ended'];

/** What Relaybox makes in the schema besides the two tables, whatever these are called. */
const ownRelations = [
  ...['outbox_leases', 'outbox_lanes', 'inbox_keys', 'inbox_lanes', 'inbox_receipts', 'relaybox_workers'],
  ...['relaybox_schema_version', 'relaybox_backfill', 'relaybox_backfill_order'],
  ...['due', 'waiting'].map((kind) => indexName('inbox_keys', kind)),
  indexName('inbox_receipts', 'age'),
];

/** Tables, indexes and sequences share a schema's names. One that is taken would be skipped as there already. */
function refuseClashes({ outboxTable, inboxTable }: Required<PostgresTables>): void {
  const taken = new Set([
    ...ownRelations,
    ...outboxIndexes.map((kind) => indexName(outboxTable, kind)),
    ...inboxIndexes.map((kind) => indexName(inboxTable, kind)),
    derived('', outboxTable, '_archive'),
    ...[outboxTable, inboxTable].map((table) => derived('', table, '_relaybox_seq')),
  ]);
  for (const [option, table] of Object.entries({ outboxTable, inboxTable })) {
    if (!taken.has(table)) continue;
    throw new ConfigurationError(
      `${option} is "${table}", which is the name of another table, index or sequence that Relaybox makes: choose another`,
    );
  }
  if (outboxTable === inboxTable) {
    throw new ConfigurationError(`outboxTable and inboxTable are both "${outboxTable}": give each its own`);
  }
}

/** The bucket's expression over the columns of one alias, for statements with several tables in sight. */
export function bucketOf(alias?: string): string {
  const of = alias === undefined ? '' : `${alias}.`;
  return `(CASE WHEN ${of}partition_key IS NULL THEN uuid_hash_extended(${of}id, 0) ELSE hashtextextended(${of}partition_key, 0) END & 63)`;
}

/** Name of an index of ours on a table: `ix_<table>_<kind>`, not quoted. */
export function indexName(table: string, kind: string): string {
  return derived('ix_', table, `_${kind}`);
}

function indexes(prefix: string, table: string, kinds: readonly string[]): Record<string, string> {
  return Object.fromEntries(kinds.map((kind) => [`${prefix}_${kind}`, quoted(indexName(table, kind))]));
}

function derived(prefix: string, table: string, suffix: string): string {
  return derivedName(prefix, table, suffix, { most: MAX_BYTES, size: Buffer.byteLength });
}

function checked(option: string, name: string): string {
  const bytes = Buffer.byteLength(name);
  // Control characters and lone surrogates can't be names; braces would be read as a migration's placeholder, and
  // `$tag$` as the end of a quoted body.
  if (bytes === 0 || bytes > MAX_BYTES || /[\p{C}{}]|\$\w*\$/u.test(name)) {
    throw new ConfigurationError(
      `${option} must be 1 to ${MAX_BYTES} bytes without control characters, braces or $…$, but is ${JSON.stringify(name)} (${bytes} bytes)`,
    );
  }
  return name;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
