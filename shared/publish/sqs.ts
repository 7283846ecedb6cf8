import { SendMessageBatchCommand, type SendMessageBatchRequestEntry, SQSClient } from '@aws-sdk/client-sqs';
import type { Failure } from '../delivery/failure.ts';
import { type SqsEnvelope, sqsBytes, toSqs } from '../message/envelope/sqs.ts';
import { ConfigurationError } from '../message/errors.ts';
import type { OutgoingMessage } from '../message/message.ts';
import { classifyEntry, classifyError, refusesContent } from './classify.ts';
import { type ClientOptions, clientConfiguration, SendInterrupted, unlessInterrupted } from './client.ts';
import type { Prepared, Publisher, SendOutcome, TransportLimits } from './publisher.ts';

const ENTRIES = 10;

/** One queue, and how to reach it. */
export interface SqsPublisherOptions {
  readonly client: SQSClient;
  readonly url: string;
  readonly fifo: boolean;
  /** Who we are on the wire. */
  readonly source: string | undefined;
}

/** A client as the SQS publisher wants it; one serves all queues of a region. */
export function sqsClient(options: ClientOptions): SQSClient {
  return new SQSClient(clientConfiguration(options));
}

/** Publishes to an SQS queue, standard or FIFO. */
export class SqsPublisher implements Publisher<SqsEnvelope> {
  readonly limits: TransportLimits;
  readonly #options: SqsPublisherOptions;

  constructor(options: SqsPublisherOptions) {
    // AWS demands this ending of every FIFO queue, and allows it to no other. A wrong setting would fail every message.
    if (options.fifo !== options.url.endsWith('.fifo')) {
      throw new ConfigurationError(
        `the queue ${options.url} is set as ${options.fifo ? '' : 'not '}FIFO, and its name says otherwise`,
      );
    }
    this.#options = options;
    this.limits = { entries: ENTRIES, callBytes: sqsBytes, ordered: options.fifo };
  }

  prepare(message: OutgoingMessage): Prepared<SqsEnvelope> {
    const entry = toSqs(message, this.#options);
    return { entry, bytes: entry.bytes };
  }

  async send(
    entries: readonly SqsEnvelope[],
    options: { readonly signal: AbortSignal },
  ): Promise<readonly SendOutcome[]> {
    assertCall(entries);
    const command = new SendMessageBatchCommand({
      QueueUrl: this.#options.url,
      Entries: entries.map(toEntry),
    });
    try {
      const answer = await unlessInterrupted(options.signal, () =>
        this.#options.client.send(command, { abortSignal: options.signal }),
      );
      const outcomes = new Map<string | undefined, SendOutcome>();
      for (const { Id } of answer.Successful ?? []) outcomes.set(Id, { kind: 'published' });
      for (const { Id, Code, Message, SenderFault } of answer.Failed ?? []) {
        outcomes.set(Id, classifyEntry(Code, Message, SenderFault, this.#subject()));
      }
      return entries.map((_, index) => outcomes.get(String(index)) ?? this.#unmentioned());
    } catch (error) {
      // SQS refuses the whole call for one entry that it can't take; of a single one it is plain which.
      if (entries.length === 1 && refusesContent(error)) {
        return [{ kind: 'rejected', reason: this.classify(error).reason }];
      }
      throw error;
    }
  }

  classify(error: unknown): Failure {
    if (error instanceof SendInterrupted) return { kind: 'interrupted', reason: error.message };
    return classifyError(error, this.#subject());
  }

  #unmentioned(): Failure {
    return { kind: 'failed', reason: `${this.#subject()} answered without mentioning this message` };
  }

  #subject(): string {
    return `SQS queue ${this.#options.url}`;
  }
}

/** The last look before the SDK: emulators take what AWS refuses, so that only this tells a packing mistake early. */
function assertCall(entries: readonly SqsEnvelope[]): void {
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
  if (entries.length < 1 || entries.length > ENTRIES || bytes > sqsBytes) {
    throw new RangeError(
      `an SQS call takes 1 to ${ENTRIES} messages of ${sqsBytes} bytes together, not ${entries.length} of ${bytes}`,
    );
  }
}

function toEntry(envelope: SqsEnvelope, index: number): SendMessageBatchRequestEntry {
  return {
    Id: String(index),
    MessageBody: envelope.body,
    MessageAttributes: Object.fromEntries(
      Object.entries(envelope.attributes).map(([name, value]) => [
        name,
        { DataType: 'String', StringValue: value },
      ]),
    ),
    ...(envelope.groupId !== undefined && { MessageGroupId: envelope.groupId }),
    ...(envelope.deduplicationId !== undefined && { MessageDeduplicationId: envelope.deduplicationId }),
  };
}
