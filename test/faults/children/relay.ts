/** A relay as a process of its own, so that it can be killed for real. Reports nothing; the database shows what it did. */
import pg from 'pg';
import { Deadline } from '../../../shared/delivery/deadline.ts';
import { silent } from '../../../shared/delivery/telemetry.ts';
import { runRelay } from '../../../shared/outbox/relay.ts';
import { relayDefaults } from '../../../shared/outbox/relay-options.ts';
import type { Publisher } from '../../../shared/publish/publisher.ts';
import { SqsPublisher, sqsClient } from '../../../shared/publish/sqs.ts';
import { postgresNames } from '../../../shared/store/postgres/names.ts';
import { postgresOutboxStore } from '../../../shared/store/postgres/outbox-store.ts';

const [url = '', endpoint = '', queueUrl = '', leaseMs = '30000'] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 3 });
const publisher = new SqsPublisher({
  client: sqsClient({ endpoint }),
  url: queueUrl,
  fifo: queueUrl.endsWith('.fifo'),
  source: 'test',
});
await runRelay({
  store: postgresOutboxStore(pool, postgresNames()),
  destinations: new Map([['orders', publisher as Publisher]]),
  deadline: Deadline.in(60_000),
  signal: new AbortController().signal,
  telemetry: silent,
  options: { ...relayDefaults, leaseMs: Number(leaseMs), mode: 'continuous', pollMs: 50, batchSize: 10 },
});
await pool.end();
