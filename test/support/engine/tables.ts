/**
 * The tables as tests name them, on either engine. Columns are named as PostgreSQL has them; the sqlserver half turns
 * `next_attempt_at_utc` into `NextAttemptAtUtc`. Columns that only one engine has (digests) are nobody's business here.
 */
const message = [
  'id',
  'message_type',
  'payload',
  'headers',
  'correlation_id',
  'created_at_utc',
  'next_attempt_at_utc',
  'retry_count',
  'max_retries',
  'state',
  'processed_at_utc',
  'last_error',
  'partition_key',
  'sequence',
] as const;

const pause = ['paused_at_utc', 'paused_until_utc', 'paused_by', 'paused_reason'] as const;
const breaker = ['failures', 'open_until_utc', 'last_error', 'opened_at_utc', 'tried'] as const;

/** Columns of each table. `effects` is the application's: what handlers write in tests. */
export const tableColumns = {
  outbox: [...message, 'destination', 'locked_until_utc', 'held', 'bucket'],
  archive: [...message, 'destination'],
  inbox: [
    ...message,
    'source',
    'external_message_id',
    'consumer',
    'locked_until_utc',
    'lock_token',
    'lost_leases',
    'held',
  ],
  leases: ['destination', 'bucket', 'lock_token', 'locked_until_utc'],
  lanes: ['destination', ...breaker, 'probe_token', 'probe_until_utc', ...pause],
  keys: [
    'consumer',
    'source',
    'partition_key',
    'head_sequence',
    'head_type',
    'next_attempt_at_utc',
    'blocked',
    'lock_token',
    'locked_until_utc',
  ],
  inboxLanes: ['consumer', 'message_type', ...pause, 'last_claim_at_utc'],
  receipts: ['digest', 'received_at_utc'],
  workers: ['worker', 'last_cycle_at_utc'],
  effects: ['place', 'id'],
} as const;

export type Table = keyof typeof tableColumns;
export type Column<T extends Table> = (typeof tableColumns)[T][number];

/** In which order rows come where a test asks for none. */
export const tableOrder: Readonly<Record<Table, readonly string[]>> = {
  outbox: ['sequence', 'id'],
  archive: ['sequence', 'id'],
  inbox: ['sequence', 'id'],
  leases: ['destination', 'bucket'],
  lanes: ['destination'],
  keys: ['consumer', 'source', 'partition_key'],
  inboxLanes: ['consumer', 'message_type'],
  receipts: ['received_at_utc'],
  workers: ['worker'],
  effects: ['place'],
};

/** What a column holds, and so how it is read and written. */
export type Kind = 'text' | 'number' | 'digits' | 'boolean' | 'guid' | 'instant' | 'json' | 'bytes';

const kinds: Readonly<Record<string, Kind>> = {
  id: 'guid',
  lock_token: 'guid',
  probe_token: 'guid',
  headers: 'json',
  tried: 'json',
  held: 'boolean',
  blocked: 'boolean',
  // Numbers of 64 bits come as their digits, on both engines.
  sequence: 'digits',
  head_sequence: 'digits',
  place: 'digits',
  digest: 'bytes',
  retry_count: 'number',
  max_retries: 'number',
  state: 'number',
  bucket: 'number',
  failures: 'number',
  lost_leases: 'number',
};

/** The kind of a column. An effect's id is whatever text the handler wrote. */
export function kindOf(table: Table, column: string): Kind {
  if (column.endsWith('_utc')) return 'instant';
  if (table === 'effects' && column === 'id') return 'text';
  return kinds[column] ?? 'text';
}
