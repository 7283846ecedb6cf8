import {
  ChangeMessageVisibilityBatchCommand,
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import type { SQSRecord } from 'aws-lambda';
import type { FunctionHost } from '../host.ts';
import { type LocalQueue, localAws } from '../sqs.ts';

export interface QueueTriggerOptions {
  readonly host: FunctionHost;
  readonly functionName: string;
  readonly queue: LocalQueue;
  /** SQS, or a fault gate before it. */
  readonly endpoint: string;
  /** Messages per invocation, 1–10. @default 10 */
  readonly batchSize?: number;
  /** Invocations at the same time. @default 1 */
  readonly concurrency?: number;
  /** Each delivery is asked: true delivers the message again although it was handled, as SQS may at any time. */
  readonly repeat?: (record: SQSRecord) => boolean;
  /** One record's delivery and whether the function took it. */
  readonly onDelivery?: (record: SQSRecord, delivered: boolean) => void;
}

/** An event source mapping: receives, invokes, and deletes what was handled. What was not comes back after its visibility timeout. */
export class QueueTrigger {
  readonly #options: QueueTriggerOptions;
  readonly #sqs: SQSClient;
  readonly #stopping = new AbortController();
  readonly #loops: Promise<void>[];

  constructor(options: QueueTriggerOptions) {
    this.#options = options;
    this.#sqs = new SQSClient({
      endpoint: options.endpoint,
      region: localAws.region,
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
      maxAttempts: 1,
    });
    this.#loops = Array.from({ length: options.concurrency ?? 1 }, () => this.#poll());
  }

  /** Stops receiving and waits for what is running. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#loops);
    this.#sqs.destroy();
  }

  async #poll(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        const messages = await this.#receive();
        if (messages.length > 0) await this.#deliver(messages);
      } catch {
        // The queue is out of reach: a poller goes on trying, as AWS's do.
        await this.#pause(250);
      }
    }
  }

  async #receive(): Promise<readonly Message[]> {
    const answer = await this.#sqs.send(
      new ReceiveMessageCommand({
        QueueUrl: this.#options.queue.url,
        MaxNumberOfMessages: this.#options.batchSize ?? 10,
        WaitTimeSeconds: 2,
        MessageAttributeNames: ['All'],
        MessageSystemAttributeNames: ['All'],
      }),
      { abortSignal: this.#stopping.signal },
    );
    return answer.Messages ?? [];
  }

  async #deliver(messages: readonly Message[]): Promise<void> {
    const { host, functionName, queue } = this.#options;
    const records = messages.map((message) => toRecord(message, queue));
    let failed: ReadonlySet<string>;
    try {
      failed = failedRecords(await host.invoke(functionName, { Records: records }), records);
    } catch {
      failed = everyRecord(records);
    }
    const done: SQSRecord[] = [];
    const again: SQSRecord[] = [];
    for (const record of records) {
      const delivered = !failed.has(record.messageId);
      this.#options.onDelivery?.(record, delivered);
      if (delivered) (this.#options.repeat?.(record) ? again : done).push(record);
    }
    await this.#showAgain(again);
    await this.#delete(done);
  }

  /** As if the deletion had got lost, only sooner. */
  async #showAgain(records: readonly SQSRecord[]): Promise<void> {
    if (records.length === 0) return;
    await this.#sqs.send(
      new ChangeMessageVisibilityBatchCommand({
        QueueUrl: this.#options.queue.url,
        Entries: records.map((record, index) => ({
          Id: String(index),
          ReceiptHandle: record.receiptHandle,
          VisibilityTimeout: 0,
        })),
      }),
    );
  }

  async #delete(records: readonly SQSRecord[]): Promise<void> {
    if (records.length === 0) return;
    await this.#sqs.send(
      new DeleteMessageBatchCommand({
        QueueUrl: this.#options.queue.url,
        Entries: records.map((record, index) => ({
          Id: String(index),
          ReceiptHandle: record.receiptHandle,
        })),
      }),
    );
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#stopping.signal.addEventListener('abort', () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }
}

/**
 * Ids of the records that a response reports as failed, as AWS reads it: nothing or an empty list is success; an
 * empty, unknown or malformed identifier fails the whole batch.
 */
export function failedRecords(response: unknown, records: readonly SQSRecord[]): ReadonlySet<string> {
  if (response === null || response === undefined) return new Set();
  if (typeof response !== 'object') return everyRecord(records);
  const list = (response as { batchItemFailures?: unknown }).batchItemFailures;
  if (list === null || list === undefined) return new Set();
  if (!Array.isArray(list)) return everyRecord(records);
  const known = everyRecord(records);
  const failed = new Set<string>();
  for (const item of list as readonly unknown[]) {
    const id = (item as { itemIdentifier?: unknown } | null)?.itemIdentifier;
    if (typeof id !== 'string' || !known.has(id)) return known;
    failed.add(id);
  }
  return failed;
}

function everyRecord(records: readonly SQSRecord[]): ReadonlySet<string> {
  return new Set(records.map((record) => record.messageId));
}

/** A received message in the shape of Lambda's event. */
/** A received message as Lambda puts it into an event. */
export function toRecord(message: Message, queue: LocalQueue): SQSRecord {
  const attributes = message.Attributes ?? {};
  const record: SQSRecord = {
    messageId: message.MessageId ?? '',
    receiptHandle: message.ReceiptHandle ?? '',
    body: message.Body ?? '',
    attributes: {
      ...attributes,
      ApproximateReceiveCount: attributes['ApproximateReceiveCount'] ?? '1',
      SentTimestamp: attributes['SentTimestamp'] ?? '',
      SenderId: attributes['SenderId'] ?? '',
      ApproximateFirstReceiveTimestamp: attributes['ApproximateFirstReceiveTimestamp'] ?? '',
    },
    messageAttributes: Object.fromEntries(
      Object.entries(message.MessageAttributes ?? {}).map(([name, value]) => [
        name,
        {
          dataType: value.DataType ?? 'String',
          ...(value.StringValue === undefined ? {} : { stringValue: value.StringValue }),
          ...(value.BinaryValue === undefined
            ? {}
            : { binaryValue: Buffer.from(value.BinaryValue).toString('base64') }),
          stringListValues: [],
          binaryListValues: [],
        },
      ]),
    ),
    md5OfBody: message.MD5OfBody ?? '',
    eventSource: 'aws:sqs',
    eventSourceARN: queue.arn,
    awsRegion: localAws.region,
  };
  return record;
}
