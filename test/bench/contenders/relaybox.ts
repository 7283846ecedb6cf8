import pg from 'pg';
import { Deadline } from '../../../shared/delivery/deadline.ts';
import { silent, type Telemetry } from '../../../shared/delivery/telemetry.ts';
import { lambdaTelemetry } from '../../../shared/lambda/telemetry.ts';
import { runRelay } from '../../../shared/outbox/relay.ts';
import { relayDefaults } from '../../../shared/outbox/relay-options.ts';
import type { Publisher } from '../../../shared/publish/publisher.ts';
import { connect, type PostgresDatabase } from '../../../shared/store/postgres/connections.ts';
import { migrate } from '../../../shared/store/postgres/migrate.ts';
import { type Names, postgresNames } from '../../../shared/store/postgres/names.ts';
import { postgresOutboxStore } from '../../../shared/store/postgres/outbox-store.ts';
import { BATCH, type Contender, PAYLOAD } from './contender.ts';

/** A broker that takes everything at once. */
export const nullPublisher: Publisher<null> = {
  limits: { entries: BATCH, callBytes: 64 * 1024 * 1024, ordered: true },
  prepare: (message) => ({ entry: null, bytes: message.payload.length }),
  send: async (entries) => entries.map(() => ({ kind: 'published' })),
  classify: () => ({ kind: 'unavailable', reason: 'never' }),
};

export interface RelayboxOptions {
  readonly afterSuccess: 'keep' | 'delete';
  /** How many partition keys the messages share; none where 0. */
  readonly keys: number;
}

/** The real relay: leases, tokens, lanes and metrics, as the function runs it. */
export async function relaybox(url: string, options: RelayboxOptions): Promise<Contender> {
  const { afterSuccess, keys } = options;
  const tables = await prepared(url);
  const database = connect({ url }, { max: 2 });
  const store = postgresOutboxStore(database, tables);
  return {
    name: `relaybox, rows ${afterSuccess === 'keep' ? 'kept' : 'deleted'}${keys > 0 ? `, ${keys} keys in order` : ''}`,
    async fill(messages) {
      await database.query(`TRUNCATE ${tables.outbox}, ${tables.leases}`);
      await fillOutbox(database, tables, { messages, keys });
      await database.query(`VACUUM (ANALYZE) ${tables.outbox}`);
      await database.query('CHECKPOINT');
    },
    async drain() {
      const { settled } = await runRelay({
        store,
        destinations: new Map([['orders', nullPublisher]]),
        deadline: Deadline.in(600_000),
        signal: new AbortController().signal,
        telemetry: metrics(),
        options: { ...relayDefaults, batchSize: BATCH, afterSuccess },
      });
      return settled;
    },
    close: () => database.end(),
  };
}

/** Counts as the function counts; the blob at an invocation's end is not written. */
function metrics(): Telemetry {
  return { ...lambdaTelemetry(), logger: silent.logger };
}

/** Relaybox's tables, made by its own migrations. */
export async function prepared(url: string): Promise<Names> {
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  const tables = postgresNames({});
  try {
    await migrate(pool, tables);
    return tables;
  } finally {
    await pool.end();
  }
}

/** Adds messages as a bulk insert does, in one lane. */
export async function fillOutbox(
  database: Pick<PostgresDatabase, 'query'>,
  tables: Names,
  rows: {
    readonly messages: number;
    readonly keys?: number;
    readonly delaySeconds?: number;
    readonly done?: boolean;
  },
): Promise<void> {
  await database.query(
    `INSERT INTO ${tables.outbox} (id, destination, message_type, payload, created_at_utc, max_retries, partition_key,
       next_attempt_at_utc, state, processed_at_utc)
     SELECT gen_random_uuid(), 'orders', 'order.placed', $1, now(), 2147483647,
       CASE WHEN $3::int > 0 THEN 'key-' || n % $3 END,
       CASE WHEN $4::int > 0 THEN now() + make_interval(secs => $4) END,
       CASE WHEN $5::boolean THEN 2 ELSE 0 END, CASE WHEN $5 THEN now() END
     FROM generate_series(1, $2::int) AS n`,
    [PAYLOAD, rows.messages, rows.keys ?? 0, rows.delaySeconds ?? 0, rows.done ?? false],
  );
}
