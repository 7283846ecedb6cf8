import { fileURLToPath } from 'node:url';
import type { Cleanup } from './cleanup.ts';
import { createOrderTables, type EngineName, openDatabase } from './database.ts';
import { type AcceptedEvent, startEventBridge } from './eventbridge.ts';
import { type FaultGate, openGate } from './faults.ts';
import { FunctionHost, type FunctionSpec, type HostOptions } from './host.ts';
import { type LocalQueue, type LocalSqs, startSqs } from './sqs.ts';
import { type HttpTrigger, startHttpTrigger } from './triggers/http.ts';
import { QueueTrigger, type QueueTriggerOptions } from './triggers/queue.ts';
import { Schedule } from './triggers/schedule.ts';

/** Functions of the local run: Relaybox's own, and the example application's. */
export type FunctionName =
  | 'migrate'
  | 'maintain'
  | 'place-order'
  | 'outbox-relay'
  | 'inbox-ingest'
  | 'invoice-on-order-placed'
  | 'email-on-order-placed';

/** What may differ from the plain local run. */
export interface SystemOptions extends HostOptions {
  /** @default 'postgres' */
  readonly engine?: EngineName;
  /** Port of the HTTP address. @default a free one */
  readonly httpPort?: number;
  /** How often the relay and the handler are swept. @default 10,000 */
  readonly sweepMs?: number;
  /** Changes to a function: other code, other settings. */
  readonly functions?: Partial<Record<FunctionName, Partial<Omit<FunctionSpec, 'name'>>>>;
  /** Visibility timeout of the consumers' queues. @default 60 */
  readonly visibilitySeconds?: number;
  /** For the consumers' queues. */
  readonly deliveries?: Pick<QueueTriggerOptions, 'repeat' | 'onDelivery'>;
  readonly onEvent?: (event: AcceptedEvent) => void;
}

/** The queues of the example application. */
export interface Queues {
  /** Wakes the relay. */
  readonly relayWake: LocalQueue;
  /** Wakes the invoice handler. */
  readonly invoiceWake: LocalQueue;
  /** Feeds ingest. */
  readonly invoicing: LocalQueue;
  /** Feeds the direct consumer. */
  readonly emails: LocalQueue;
  readonly invoicingDead: LocalQueue;
  readonly emailsDead: LocalQueue;
}

/** The running system. */
export interface LocalSystem {
  readonly databaseUrl: string;
  readonly http: HttpTrigger;
  readonly host: FunctionHost;
  readonly sqs: LocalSqs;
  readonly queues: Queues;
  /** What the functions take for SQS and EventBridge. */
  readonly gates: { readonly sqs: FaultGate; readonly eventBridge: FaultGate };
}

/** The bus that the example's destination `events` leads to. */
export const busName = 'orders';

/** Starts everything, each part registered for its end before it is up. Where a start fails, run the cleanup. */
export async function startSystem(cleanup: Cleanup, options: SystemOptions = {}): Promise<LocalSystem> {
  const [databaseUrl, brokers] = await Promise.all([
    openDatabase(cleanup, options.engine),
    startBrokers(cleanup, options),
  ]);
  await createOrderTables(databaseUrl, options.engine);
  const { sqs, queues, gates } = brokers;
  const host = new FunctionHost(options);
  cleanup.defer(() => host.stop());
  const specs = functionSpecs({ databaseUrl, queues, gates }, options);
  await Promise.all(specs.map((spec) => host.add(spec)));
  await host.invoke('migrate', {});
  const http = await startTriggers(cleanup, { host, queues, gates }, options);
  return { databaseUrl, http, host, sqs, queues, gates };
}

type Brokers = Pick<LocalSystem, 'sqs' | 'queues' | 'gates'>;

async function startBrokers(cleanup: Cleanup, options: SystemOptions): Promise<Brokers> {
  const sqs = await startSqs();
  cleanup.defer(() => sqs.stop());
  const invoicingDead = await sqs.createQueue('invoicing-dead');
  const emailsDead = await sqs.createQueue('emails-dead');
  const visibilitySeconds = options.visibilitySeconds ?? 60;
  const feeding = (queue: LocalQueue) => ({ visibilitySeconds, deadLetter: { queue, maxReceiveCount: 20 } });
  const queues: Queues = {
    relayWake: await sqs.createQueue('relay-wake'),
    invoiceWake: await sqs.createQueue('invoice-wake'),
    invoicing: await sqs.createQueue('invoicing', feeding(invoicingDead)),
    emails: await sqs.createQueue('emails', feeding(emailsDead)),
    invoicingDead,
    emailsDead,
  };
  const placed = { 'detail-type': ['order.placed'] };
  const bridge = await startEventBridge({
    buses: [busName],
    sqsEndpoint: sqs.endpoint,
    rules: [
      { bus: busName, name: 'invoicing', pattern: placed, queue: queues.invoicing },
      { bus: busName, name: 'emails', pattern: placed, queue: queues.emails },
    ],
    ...(options.onEvent && { onEvent: options.onEvent }),
  });
  cleanup.defer(() => bridge.stop());
  const gates = { sqs: await openGate(sqs.endpoint), eventBridge: await openGate(bridge.endpoint) };
  cleanup.defer(() => gates.sqs.stop());
  cleanup.defer(() => gates.eventBridge.stop());
  return { sqs, queues, gates };
}

/** What each function is deployed with. */
function functionSpecs(
  { databaseUrl, queues, gates }: Pick<LocalSystem, 'databaseUrl' | 'queues' | 'gates'>,
  options: SystemOptions,
): readonly FunctionSpec[] {
  const common = {
    RELAYBOX_DATABASE_URL: databaseUrl,
    RELAYBOX_SOURCE: 'orders-service',
    AWS_ENDPOINT_URL_SQS: gates.sqs.url,
    AWS_ENDPOINT_URL_EVENTBRIDGE: gates.eventBridge.url,
    RELAYBOX_WAKE_QUEUE_URL: queues.relayWake.url,
    RELAYBOX_INBOX_WAKE_QUEUE_URLS: JSON.stringify({ 'order.placed': queues.invoiceWake.url }),
    RELAYBOX_INBOX_SOURCE: 'orders-service',
  };
  const destinations = { events: { type: 'eventbridge', bus: busName } };
  const engine = options.engine === 'sqlserver' ? 'sqlserver/' : '';
  const own = (folder: string) => pathOf(`../functions/${engine}${folder}/index.ts`);
  const example = (name: string) => pathOf(`../examples/orders/${engine}${name}.ts`);
  const specs: readonly (FunctionSpec & { readonly name: FunctionName })[] = [
    { name: 'migrate', entry: own('migrate'), env: {}, timeoutMs: 60_000 },
    { name: 'maintain', entry: own('maintain'), env: {}, timeoutMs: 30_000 },
    { name: 'place-order', entry: example('place-order'), env: {}, timeoutMs: 10_000, concurrency: 2 },
    {
      name: 'outbox-relay',
      entry: own('outbox-relay'),
      env: { RELAYBOX_DESTINATIONS: JSON.stringify(destinations) },
      timeoutMs: 30_000,
      concurrency: 2,
    },
    { name: 'inbox-ingest', entry: own('inbox-ingest'), env: {}, timeoutMs: 10_000 },
    {
      name: 'invoice-on-order-placed',
      entry: example('invoice-on-order-placed'),
      env: {},
      timeoutMs: 10_000,
    },
    { name: 'email-on-order-placed', entry: example('email-on-order-placed'), env: {}, timeoutMs: 10_000 },
  ];
  return specs.map((spec) => {
    const change = options.functions?.[spec.name] ?? {};
    return { ...spec, ...change, env: { ...common, ...spec.env, ...change.env } };
  });
}

async function startTriggers(
  cleanup: Cleanup,
  { host, queues, gates }: Pick<LocalSystem, 'host' | 'queues' | 'gates'>,
  options: SystemOptions,
): Promise<HttpTrigger> {
  const endpoint = gates.sqs.url;
  const poll = (functionName: FunctionName, queue: LocalQueue, more: Partial<QueueTriggerOptions> = {}) => {
    const trigger = new QueueTrigger({ host, functionName, queue, endpoint, ...more });
    cleanup.defer(() => trigger.stop());
  };
  const sweep = (functionName: FunctionName, everyMs: number) => {
    const schedule = new Schedule({ host, functionName, everyMs });
    cleanup.defer(() => schedule.stop());
  };
  poll('outbox-relay', queues.relayWake);
  poll('invoice-on-order-placed', queues.invoiceWake);
  poll('inbox-ingest', queues.invoicing, options.deliveries);
  poll('email-on-order-placed', queues.emails, options.deliveries);
  sweep('outbox-relay', options.sweepMs ?? 10_000);
  sweep('invoice-on-order-placed', options.sweepMs ?? 10_000);
  sweep('maintain', 60_000);
  const http = await startHttpTrigger({
    host,
    routes: { 'POST /orders': 'place-order' },
    ...(options.httpPort !== undefined && { port: options.httpPort }),
  });
  cleanup.defer(() => http.stop());
  return http;
}

function pathOf(relative: string): string {
  return fileURLToPath(new URL(relative, import.meta.url));
}
