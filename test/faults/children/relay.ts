/** A relay as a process of its own, so that it can be killed for real. Reports nothing; the database shows what it did. */
import { Deadline } from '../../../shared/delivery/deadline.ts';
import { silent } from '../../../shared/delivery/telemetry.ts';
import { readSettings } from '../../../shared/lambda/config.ts';
import { runRelay } from '../../../shared/outbox/relay.ts';
import { relayDefaults } from '../../../shared/outbox/relay-options.ts';
import type { Publisher } from '../../../shared/publish/publisher.ts';
import { SqsPublisher, sqsClient } from '../../../shared/publish/sqs.ts';
import { engine } from './engine.ts';

const [endpoint = '', queueUrl = '', leaseMs = '30000'] = process.argv.slice(2);
const connections = engine.connect(readSettings(), { max: 3, queryTimeoutMs: () => 10_000 });
const publisher = new SqsPublisher({
  client: sqsClient({ endpoint }),
  url: queueUrl,
  fifo: queueUrl.endsWith('.fifo'),
  source: 'test',
});
await runRelay({
  store: connections.outbox,
  destinations: new Map([['orders', publisher as Publisher]]),
  deadline: Deadline.in(60_000),
  signal: new AbortController().signal,
  telemetry: silent,
  options: { ...relayDefaults, leaseMs: Number(leaseMs), mode: 'continuous', pollMs: 50, batchSize: 10 },
});
await connections.end();
