import { type FaultGate, openGate } from '../../../local/faults.ts';
import { type LocalQueue, type LocalSqs, localAws, type QueueOptions, startSqs } from '../../../local/sqs.ts';
import { Deadline } from '../../../shared/delivery/deadline.ts';
import { silent, type Telemetry } from '../../../shared/delivery/telemetry.ts';
import { type RelayReport, runRelay } from '../../../shared/outbox/relay.ts';
import { type RelayOptions, relayDefaults } from '../../../shared/outbox/relay-options.ts';
import type { Publisher } from '../../../shared/publish/publisher.ts';
import { SqsPublisher, sqsClient } from '../../../shared/publish/sqs.ts';
import type { OutboxStore } from '../../../shared/store/outbox-store.ts';
import { engine } from './engine.ts';
import type { EngineDatabase } from './test-engine.ts';

/** A database, an SQS behind a gate for faults, and relays between them. */
export interface RelayWorld {
  readonly db: EngineDatabase;
  readonly sqs: LocalSqs;
  readonly gate: FaultGate;
  /** Creates a queue and maps a destination of the same name to it, through the gate. */
  queue(destination: string, options?: QueueOptions): Promise<LocalQueue>;
  /** Maps a destination to a publisher of the test's own. */
  destination(name: string, publisher: Publisher): void;
  /** A relay with connections of its own, as another function instance would have; `over` is put over its store. */
  relay(
    options?: Partial<RelayOptions>,
    telemetry?: Telemetry,
    over?: (store: OutboxStore) => OutboxStore,
  ): WorldRelay;
  /** Counts of outbox rows by state. */
  states(): Promise<Record<number, number>>;
  stop(): Promise<void>;
}

/** One relay function. */
export interface WorldRelay {
  readonly store: OutboxStore;
  /** One invocation with so much time. */
  run(ms?: number): Promise<RelayReport>;
  /** SIGTERM. */
  abort(): void;
}

/** Waits that make a test quick: the shapes of the real ones, a tenth to a hundredth as long. */
export const quick: Partial<RelayOptions> = {
  retry: { firstSeconds: 0.2, factor: 2, maxSeconds: 1 },
  breaker: { firstSeconds: 0.2, factor: 2, maxSeconds: 1 },
  leaseMs: 3_000,
  pollMs: 50,
  mode: 'continuous',
};

/** Creates it, in a database of the file's own. */
export async function createRelayWorld(): Promise<RelayWorld> {
  // The SDK wants credentials, whoever it talks to.
  process.env['AWS_ACCESS_KEY_ID'] ??= 'local';
  process.env['AWS_SECRET_ACCESS_KEY'] ??= 'local';
  process.env['AWS_REGION'] ??= localAws.region;
  const db = await engine.createDatabase();
  const sqs = await startSqs();
  const gate = await openGate(sqs.endpoint);
  const client = sqsClient({ endpoint: gate.url });
  const destinations = new Map<string, Publisher>();
  return {
    db,
    sqs,
    gate,
    async queue(destination, options = {}) {
      const queue = await sqs.createQueue(destination, options);
      const publisher = new SqsPublisher({
        client,
        url: queue.url,
        fifo: options.fifo ?? false,
        source: 'test',
      });
      destinations.set(destination, publisher as Publisher);
      return queue;
    },
    destination(name, publisher) {
      destinations.set(name, publisher);
    },
    relay(options = {}, telemetry = silent, over = (store) => store) {
      const store = over(db.instance().outbox);
      const stopping = new AbortController();
      return {
        store,
        abort: () => stopping.abort(),
        run: (ms = 20_000) =>
          runRelay({
            store,
            destinations,
            deadline: Deadline.in(ms),
            signal: stopping.signal,
            telemetry,
            options: { ...relayDefaults, ...options },
          }),
      };
    },
    async states() {
      const rows = await db.sql({
        postgres: `SELECT state, count(*) AS count FROM ${db.tables.outbox} GROUP BY state`,
        sqlserver: `SELECT [State] AS [state], COUNT(*) AS [count] FROM ${db.tables.outbox} GROUP BY [State]`,
      });
      return Object.fromEntries(rows.map(({ state, count }) => [Number(state), Number(count)]));
    },
    async stop() {
      await gate.stop();
      await sqs.stop();
      client.destroy();
      await db.drop();
    },
  };
}
