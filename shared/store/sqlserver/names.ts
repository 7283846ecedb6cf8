import { ConfigurationError } from '../../message/errors.ts';
import { derivedName } from '../derived-name.ts';

/** Where Relaybox's tables are. The two big ones may be another program's. */
export interface SqlServerTables {
  /** @default 'dbo' */
  readonly schema?: string;
  /** @default 'OutboxMessages' */
  readonly outboxTable?: string;
  /** @default 'InboxMessages' */
  readonly inboxTable?: string;
}

/** Identifiers ready to stand in a statement: validated, bracketed, qualified with the schema. */
export interface Names {
  readonly schema: string;
  readonly outbox: string;
  readonly outboxArchive: string;
  readonly outboxSequence: string;
  readonly inbox: string;
  readonly inboxSequence: string;
  readonly leases: string;
  readonly lanes: string;
  readonly keys: string;
  readonly inboxLanes: string;
  readonly receipts: string;
  readonly workers: string;
  readonly version: string;
  /** The names as configured, not quoted: for the catalog's views and for messages to people. */
  readonly plain: Required<SqlServerTables>;
  /** What `{{name}}` stands for in the migrations. */
  readonly placeholders: Readonly<Record<string, string>>;
}

/** SQL Server counts UTF-16 code units, as JavaScript does. */
const MAX_LENGTH = 128;

/** Our own text columns compare by code point. Only trailing spaces still don't count: see `sameText`. */
const BINARY = 'Latin1_General_100_BIN2';

/** Resolves and checks the tables' names. Throws `ConfigurationError` for one that SQL Server would misread. */
export function sqlServerNames(tables: SqlServerTables = {}): Names {
  const plain = {
    schema: checked('schema', tables.schema ?? 'dbo'),
    outboxTable: checked('outboxTable', tables.outboxTable ?? 'OutboxMessages'),
    inboxTable: checked('inboxTable', tables.inboxTable ?? 'InboxMessages'),
  };
  // Most databases fold case, so two names that differ only by it would be one table.
  if (plain.outboxTable.toLowerCase() === plain.inboxTable.toLowerCase()) {
    throw new ConfigurationError(
      `outboxTable and inboxTable are both "${plain.outboxTable}": give each its own`,
    );
  }
  const schema = quoted(plain.schema);
  const within = (table: string): string => `${schema}.${quoted(table)}`;
  const names = {
    schema,
    outbox: within(plain.outboxTable),
    outboxArchive: within(derived('', plain.outboxTable, '_archive')),
    outboxSequence: within(derived('', plain.outboxTable, '_relaybox_seq')),
    inbox: within(plain.inboxTable),
    inboxSequence: within(derived('', plain.inboxTable, '_relaybox_seq')),
    leases: within('OutboxLeases'),
    lanes: within('OutboxLanes'),
    keys: within('InboxKeys'),
    inboxLanes: within('InboxLanes'),
    receipts: within('InboxReceipts'),
    workers: within('RelayboxWorkers'),
    version: within('RelayboxSchemaVersion'),
    plain,
  };
  return {
    ...names,
    placeholders: {
      schema,
      outbox: names.outbox,
      outbox_archive: names.outboxArchive,
      inbox: names.inbox,
      outbox_sequence: names.outboxSequence,
      inbox_sequence: names.inboxSequence,
      leases: names.leases,
      lanes: names.lanes,
      keys: names.keys,
      inbox_lanes: names.inboxLanes,
      receipts: names.receipts,
      workers: names.workers,
      backfill: within('RelayboxBackfill'),
      binary: BINARY,
      key_bucket: keyBucket('[PartitionKey]'),
      inbox_identity: inboxDigest("ISNULL([Consumer], N'')", '[Source]', '[ExternalMessageId]'),
      inbox_key: inboxKeyDigest("ISNULL([Consumer], N'')", '[Source]', '[PartitionKey]'),
      inbox_lane: inboxLaneDigest("ISNULL([Consumer], N'')", '[MessageType]'),
      // The names as text, for OBJECT_ID and the catalog's views.
      schema_literal: literal(plain.schema),
      ...Object.fromEntries(
        (
          [
            ['outbox', names.outbox],
            ['outbox_archive', names.outboxArchive],
            ['inbox', names.inbox],
            ['leases', names.leases],
            ['lanes', names.lanes],
            ['keys', names.keys],
            ['inbox_lanes', names.inboxLanes],
            ['receipts', names.receipts],
            ['workers', names.workers],
            ['outbox_sequence', names.outboxSequence],
            ['inbox_sequence', names.inboxSequence],
            ['backfill', within('RelayboxBackfill')],
          ] as const
        ).map(([name, quotedName]) => [`${name}_literal`, literal(quotedName)]),
      ),
      ...indexes('outbox_index', plain.outboxTable, ['due', 'key', 'ended', 'order']),
      ...indexes('inbox_index', plain.inboxTable, [
        'identity',
        'ready',
        'waiting',
        'key',
        'failed',
        'ended',
        'order',
      ]),
      ...indexes('keys_index', 'InboxKeys', ['due', 'waiting']),
      ...indexes('receipts_index', 'InboxReceipts', ['age']),
      ...constraints(plain.outboxTable, 'outbox', within),
      ...constraints(plain.inboxTable, 'inbox', within),
      outbox_archive_pk: quoted(derived('PK_', plain.outboxTable, '_archive')),
      // Indexes beside running writers are not for every edition; the runner says otherwise where it is one that can.
      online: 'ONLINE = OFF',
    },
  };
}

/**
 * The bucket of a keyed row, over the expression of its partition key; 0 to 63. A row without a key has whatever bucket
 * its column's default drew. The table's check constraint repeats this, so that nobody can put a key in two buckets.
 */
export function keyBucket(key: string): string {
  return `CONVERT(TINYINT, CONVERT(TINYINT, SUBSTRING(HASHBYTES('SHA2_256', CONVERT(VARBINARY(400), ${key})), 1, 1)) & 63)`;
}

/**
 * The identity of an inbox message by exact code points, over expressions of its parts: a digest of their bytes, each
 * with its length before it. The unique index and the receipts are over this very expression.
 */
export function inboxDigest(consumer: string, source: string, externalId: string): string {
  return `CONVERT(BINARY(32), HASHBYTES('SHA2_256', ${measured(consumer, 400)} + ${measured(source, 400)} + ${measured(externalId, 600)}))`;
}

/** The primary key of `InboxKeys`: digest of consumer, source and partition key, which together are too long for one. */
export function inboxKeyDigest(consumer: string, source: string, key: string): string {
  return `CONVERT(BINARY(32), HASHBYTES('SHA2_256', ${measured(consumer, 400)} + ${measured(source, 400)} + ${measured(key, 400)}))`;
}

/**
 * True where two texts are the same code points. The plain comparison comes first, since it is what an index can serve:
 * but it folds what the column's collation folds, and ignores trailing spaces under every collation.
 */
export function sameText(column: string, other: string): string {
  return `(${column} = ${other} AND ${column} COLLATE ${BINARY} = ${other} AND DATALENGTH(${column}) = DATALENGTH(${other}))`;
}

/** The lane of an inbox message, a digest of consumer and message type, over expressions of both. */
export function inboxLaneDigest(consumer: string, messageType: string): string {
  return `CONVERT(BINARY(32), HASHBYTES('SHA2_256', ${measured(consumer, 400)} + ${measured(messageType, 400)}))`;
}

/** An outbox row's bucket, of one alias. It is stored: an index over a computed column would make demands on every writer's session. */
export function bucketOf(alias?: string): string {
  return alias === undefined ? '[Bucket]' : `${alias}.[Bucket]`;
}

/** A GUID as the rest of Relaybox writes it: SQL Server's own text is in capitals. */
export function guidText(expression: string): string {
  return `LOWER(CONVERT(NVARCHAR(36), ${expression}))`;
}

/** Puts a text expression under code-point comparison: two columns of different collations can't be compared as they are. */
export function binary(expression: string): string {
  return `${expression} COLLATE ${BINARY}`;
}

/** Name of an index of ours on a table: `IX_<table>_<kind>`, not quoted. */
export function indexName(table: string, kind: string): string {
  return derived('IX_', table, `_${kind}`);
}

/** Puts a name in brackets. */
export function quoted(name: string): string {
  return `[${name.replaceAll(']', ']]')}]`;
}

/** A text literal. For names that were checked, and for migrations; values are bound. */
export function literal(text: string): string {
  return `N'${text.replaceAll("'", "''")}'`;
}

function measured(text: string, bytes: number): string {
  return `CONVERT(BINARY(2), CONVERT(SMALLINT, DATALENGTH(${text}))) + CONVERT(VARBINARY(${bytes}), ${text})`;
}

const constraintKinds = {
  outbox: ['pk', 'check_bucket', 'default_sequence', 'default_bucket', 'default_held'],
  inbox: ['pk', 'default_sequence', 'default_consumer', 'default_lost_leases', 'default_held'],
} as const;

/** Constraints are named, since a migration must find them again. Their names are the schema's, not the table's. */
function constraints(
  table: string,
  prefix: keyof typeof constraintKinds,
  within: (name: string) => string,
): Record<string, string> {
  return Object.fromEntries(
    constraintKinds[prefix].flatMap((kind) => {
      const name = derived('RB_', table, `_${kind}`);
      return [
        [`${prefix}_${kind}`, quoted(name)],
        [`${prefix}_${kind}_literal`, literal(within(name))],
      ];
    }),
  );
}

function indexes(prefix: string, table: string, kinds: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    kinds.flatMap((kind) => [
      [`${prefix}_${kind}`, quoted(indexName(table, kind))],
      [`${prefix}_${kind}_literal`, literal(indexName(table, kind))],
    ]),
  );
}

function derived(prefix: string, table: string, suffix: string): string {
  return derivedName(prefix, table, suffix, { most: MAX_LENGTH, size: (name) => name.length });
}

function checked(option: string, name: string): string {
  // Control characters and lone surrogates can't be names; braces would be read as a migration's placeholder.
  if (name.length === 0 || name.length > MAX_LENGTH || /[\p{C}{}]/u.test(name)) {
    throw new ConfigurationError(
      `${option} must be 1 to ${MAX_LENGTH} characters without control characters or braces, but is ${JSON.stringify(name)} (${name.length} characters)`,
    );
  }
  // "dbo.OutboxMessages" and "[OutboxMessages]" are the usual slips: as names they would mean a table of just that name.
  if (/[.[\]]/.test(name)) {
    throw new ConfigurationError(
      `${option} is one name without dots and brackets, but is ${JSON.stringify(name)}: the schema has an option of its own`,
    );
  }
  return name;
}
