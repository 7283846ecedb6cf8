import { setTimeout as sleep } from 'node:timers/promises';
import { DeleteMessageCommand, ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { SQSRecord } from 'aws-lambda';
import { pick } from '../../local/demo/random.ts';
import type { FunctionHost } from '../../local/host.ts';
import type { LocalQueue } from '../../local/sqs.ts';
import { failedRecords, toRecord } from '../../local/triggers/queue.ts';
import { sqsClient } from '../../shared/publish/sqs.ts';

interface Waiting {
  record: SQSRecord;
  /** Deliveries until the queue has had enough of it. */
  left: number;
  readonly notBefore: number;
}

export interface ShuffledQueueOptions {
  readonly host: FunctionHost;
  readonly functionName: string;
  readonly queue: LocalQueue;
  /** Numbers from 0 up to 1, of a seed. */
  readonly random: () => number;
}

/**
 * Feeds a function with what a queue has, as a standard queue may: late, in any order, up to three times each, twice in one
 * batch or in two at once too. A message is deleted after the last delivery that the function took.
 */
export class ShuffledQueue {
  /** Deliveries that the function took. */
  taken = 0;
  readonly #options: ShuffledQueueOptions;
  readonly #sqs: SQSClient;
  readonly #waiting = new Map<string, Waiting>();
  readonly #loops: Promise<void>[];
  #stopping = false;

  constructor(options: ShuffledQueueOptions) {
    this.#options = options;
    this.#sqs = sqsClient({ endpoint: new URL(options.queue.url).origin });
    const turns = [() => this.#receive(), () => this.#deliver(), () => this.#deliver()];
    this.#loops = turns.map((turn) => this.#loop(turn));
  }

  /** Stops, and waits for what is under way. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#loops);
    this.#sqs.destroy();
  }

  async #loop(turn: () => Promise<void>): Promise<void> {
    while (!this.#stopping) {
      await turn();
      await sleep(30);
    }
  }

  async #receive(): Promise<void> {
    const { queue, random } = this.#options;
    const { Messages = [] } = await this.#sqs.send(
      new ReceiveMessageCommand({
        QueueUrl: queue.url,
        MaxNumberOfMessages: 10,
        VisibilityTimeout: 600,
        MessageAttributeNames: ['All'],
        MessageSystemAttributeNames: ['All'],
      }),
    );
    for (const message of Messages) {
      const record = toRecord(message, queue);
      const left = 1 + Math.floor(random() * 3);
      this.#waiting.set(record.messageId, { record, left, notBefore: Date.now() + random() * 500 });
    }
  }

  async #deliver(): Promise<void> {
    const { host, functionName, random } = this.#options;
    const ready = [...this.#waiting.values()].filter(({ notBefore }) => notBefore <= Date.now());
    if (ready.length === 0) return;
    // With repetition: one may be there twice.
    const records = Array.from({ length: 1 + Math.floor(random() * 10) }, () => pick(random, ready).record);
    const failed = await host.invoke(functionName, { Records: records }).then(
      (answer) => failedRecords(answer, records),
      () => new Set(records.map(({ messageId }) => messageId)),
    );
    for (const { messageId, receiptHandle } of records) {
      const waiting = this.#waiting.get(messageId);
      if (failed.has(messageId) || waiting === undefined) continue;
      this.taken += 1;
      waiting.left -= 1;
      if (waiting.left > 0) continue;
      this.#waiting.delete(messageId);
      const { queue } = this.#options;
      await this.#sqs.send(new DeleteMessageCommand({ QueueUrl: queue.url, ReceiptHandle: receiptHandle }));
    }
  }
}
