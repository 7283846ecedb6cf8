import { setTimeout as sleep } from 'node:timers/promises';
import { DeleteMessageCommand, type Message, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import type { SQSRecord } from 'aws-lambda';
import type { FunctionHost } from '../../local/host.ts';
import type { LocalQueue } from '../../local/sqs.ts';
import { failedRecords, toRecord } from '../../local/triggers/queue.ts';
import { sqsClient } from '../../shared/publish/sqs.ts';

const BATCH = 10;
/** A visibility timeout, as short as a test is. */
const AGAIN_MS = 300;

/** Takes everything out of a FIFO queue; answers it in order, as records. */
export async function drained(queue: LocalQueue): Promise<readonly SQSRecord[]> {
  const sqs = sqsClient({ endpoint: new URL(queue.url).origin });
  const take = async (): Promise<readonly Message[]> => {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({
        QueueUrl: queue.url,
        MaxNumberOfMessages: BATCH,
        MessageAttributeNames: ['All'],
        MessageSystemAttributeNames: ['All'],
      }),
    );
    for (const { ReceiptHandle } of Messages) {
      await sqs.send(new DeleteMessageCommand({ QueueUrl: queue.url, ReceiptHandle }));
    }
    return Messages;
  };
  const records: SQSRecord[] = [];
  for (let some = await take(); some.length > 0; some = await take()) {
    records.push(...some.map((message) => toRecord(message, queue)));
  }
  sqs.destroy();
  return records;
}

/**
 * Feeds a function as Lambda does from a FIFO queue: several messages of a group in one batch, in order, and no other of the
 * group until that batch has ended. The local queue gives out one message of a group at a time, and never shows what
 * happens behind one that failed.
 */
export class GroupedFeed {
  readonly #groups: Map<string, SQSRecord[]>;
  readonly #busy = new Set<string>();
  readonly #loops: Promise<void>[];
  #stopping = false;

  constructor(host: FunctionHost, functionName: string, records: readonly SQSRecord[], atOnce: number) {
    this.#groups = Map.groupBy(records, (record) => record.attributes.MessageGroupId ?? '');
    this.#loops = Array.from({ length: atOnce }, () => this.#poll(host, functionName));
  }

  /** Messages that are not handled yet. */
  get left(): number {
    return [...this.#groups.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Stops, and waits for what is under way. */
  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#loops);
  }

  async #poll(host: FunctionHost, functionName: string): Promise<void> {
    while (!this.#stopping) {
      const batch = this.#next();
      if (batch.length > 0) {
        const records = batch.flatMap(([, some]) => some);
        const failed = await host.invoke(functionName, { Records: records }).then(
          (answer) => failedRecords(answer, records),
          () => new Set(records.map(({ messageId }) => messageId)),
        );
        for (const [group, some] of batch) this.#keep(group, some, failed);
        if (failed.size > 0) await sleep(AGAIN_MS);
        for (const [group] of batch) this.#busy.delete(group);
      }
      await sleep(20);
    }
  }

  /** The first messages of one group after the other, as many as a batch has. */
  #next(): readonly (readonly [string, readonly SQSRecord[]])[] {
    const batch: [string, readonly SQSRecord[]][] = [];
    let room = BATCH;
    for (const [group, waiting] of this.#groups) {
      if (this.#busy.has(group) || waiting.length === 0 || room === 0) continue;
      const some = waiting.slice(0, room);
      room -= some.length;
      this.#busy.add(group);
      batch.push([group, some]);
    }
    return batch;
  }

  #keep(group: string, delivered: readonly SQSRecord[], failed: ReadonlySet<string>): void {
    const behind = this.#groups.get(group)?.slice(delivered.length) ?? [];
    this.#groups.set(group, [...delivered.filter(({ messageId }) => failed.has(messageId)), ...behind]);
  }
}
