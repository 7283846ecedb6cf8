import { buildApp } from 'fauxqs';

/** A queue of the local SQS. */
export interface LocalQueue {
  readonly name: string;
  readonly url: string;
  readonly arn: string;
}

export interface QueueOptions {
  /** FIFO; the name gets the suffix `.fifo` where it lacks it. @default false */
  readonly fifo?: boolean;
  /** How long a received message stays hidden. @default 30 */
  readonly visibilitySeconds?: number;
  /** After so many receives a message goes to this queue. */
  readonly deadLetter?: { readonly queue: LocalQueue; readonly maxReceiveCount: number };
}

/** Messages in a queue, by where they are. */
export interface QueueDepth {
  readonly ready: number;
  readonly delayed: number;
  readonly inFlight: number;
}

/** SQS in this process, on loopback. */
export interface LocalSqs {
  /** Endpoint for SDK clients: pass it explicitly, since a queue URL's host may not be what to connect to. */
  readonly endpoint: string;
  createQueue(name: string, options?: QueueOptions): Promise<LocalQueue>;
  depth(queue: LocalQueue): Promise<QueueDepth>;
  /** Bodies in the queue, whatever their state: for looking, receives nothing. */
  bodies(queue: LocalQueue): Promise<readonly string[]>;
  stop(): Promise<void>;
}

/** Region and account that the local stand-ins pretend to be. */
export const localAws = { region: 'us-east-1', account: '000000000000' } as const;

/**
 * Starts SQS. The emulator's own starter listens on every interface, so its application is built here and put on
 * loopback; and its queue URLs name a host that doesn't resolve, so ours name the endpoint.
 */
export async function startSqs(port = 0): Promise<LocalSqs> {
  const app = buildApp({ logger: false, defaultRegion: localAws.region });
  const endpoint = await app.listen({ host: '127.0.0.1', port });

  async function call(action: string, body: unknown): Promise<void> {
    const response = await app.inject({
      method: 'POST',
      url: '/',
      headers: { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': `AmazonSQS.${action}` },
      payload: JSON.stringify(body),
    });
    if (response.statusCode !== 200) throw new Error(`SQS ${action} was refused: ${response.body}`);
  }

  async function inspect(queue: LocalQueue): Promise<Inspection> {
    const response = await app.inject({ method: 'GET', url: `/_fauxqs/queues/${queue.name}` });
    if (response.statusCode !== 200) throw new Error(`there is no queue ${queue.name}`);
    return response.json<Inspection>();
  }

  return {
    endpoint,
    async createQueue(name, options = {}) {
      const full = options.fifo && !name.endsWith('.fifo') ? `${name}.fifo` : name;
      const attributes: Record<string, string> = {
        VisibilityTimeout: String(options.visibilitySeconds ?? 30),
      };
      if (options.fifo) attributes['FifoQueue'] = 'true';
      if (options.deadLetter) {
        const { queue, maxReceiveCount } = options.deadLetter;
        attributes['RedrivePolicy'] = JSON.stringify({ deadLetterTargetArn: queue.arn, maxReceiveCount });
      }
      await call('CreateQueue', { QueueName: full, Attributes: attributes });
      return {
        name: full,
        url: `${endpoint}/${localAws.account}/${full}`,
        arn: `arn:aws:sqs:${localAws.region}:${localAws.account}:${full}`,
      };
    },
    async depth(queue) {
      const { messages } = await inspect(queue);
      return {
        ready: messages.ready.length,
        delayed: messages.delayed.length,
        inFlight: messages.inflight.length,
      };
    },
    async bodies(queue) {
      const { messages } = await inspect(queue);
      const held = messages.inflight.map((entry) => entry.message);
      return [...messages.ready, ...messages.delayed, ...held].map((message) => message.body);
    },
    async stop() {
      await app.close();
    },
  };
}

/** What the emulator answers about a queue. */
interface Inspection {
  readonly messages: {
    readonly ready: readonly { readonly body: string }[];
    readonly delayed: readonly { readonly body: string }[];
    readonly inflight: readonly { readonly message: { readonly body: string } }[];
  };
}
