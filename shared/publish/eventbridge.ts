import {
  DescribeEventBusCommand,
  EventBridgeClient,
  PutEventsCommand,
  type PutEventsResultEntry,
} from '@aws-sdk/client-eventbridge';
import type { Failure } from '../delivery/failure.ts';
import {
  type EventBridgeEnvelope,
  eventBridgeBytes,
  toEventBridge,
} from '../message/envelope/eventbridge.ts';
import { ConfigurationError } from '../message/errors.ts';
import type { OutgoingMessage } from '../message/message.ts';
import { classifyEntry, classifyError, refusesContent } from './classify.ts';
import { type ClientOptions, clientConfiguration, SendInterrupted, unlessInterrupted } from './client.ts';
import type { Prepared, Publisher, SendOutcome, TransportLimits } from './publisher.ts';

const ENTRIES = 10;
const SOURCE_CHARACTERS = 256;
const VERIFIED_FOR_MS = 5 * 60_000;

/** One bus, and how to reach it. */
export interface EventBridgePublisherOptions {
  readonly client: EventBridgeClient;
  /** Name or ARN of the bus. */
  readonly bus: string;
  /** Who we are on the wire: the event's source. */
  readonly source: string | undefined;
}

/** A client as the EventBridge publisher wants it; one serves all buses of a region. */
export function eventBridgeClient(options: ClientOptions): EventBridgeClient {
  return new EventBridgeClient(clientConfiguration(options));
}

/** Publishes to an EventBridge bus. The bus is looked up before the first send, and again every five minutes. */
export class EventBridgePublisher implements Publisher<EventBridgeEnvelope> {
  readonly limits: TransportLimits = { entries: ENTRIES, callBytes: eventBridgeBytes, ordered: false };
  readonly #client: EventBridgeClient;
  readonly #bus: string;
  readonly #source: string;
  #verifiedAt = Number.NEGATIVE_INFINITY;

  constructor(options: EventBridgePublisherOptions) {
    this.#client = options.client;
    this.#bus = options.bus;
    this.#source = checkedSource(options.source);
  }

  prepare(message: OutgoingMessage): Prepared<EventBridgeEnvelope> {
    const entry = toEventBridge(message, { source: this.#source });
    return { entry, bytes: entry.bytes };
  }

  /**
   * EventBridge answers success for a bus that does not exist, and the events are gone. So the bus is looked up, and
   * where that is not permitted nothing is sent: the failure says so, while the messages wait.
   */
  async verify(options: { readonly signal: AbortSignal }): Promise<void> {
    if (Date.now() - this.#verifiedAt < VERIFIED_FOR_MS) return;
    const command = new DescribeEventBusCommand({ Name: this.#bus });
    try {
      await unlessInterrupted(options.signal, () =>
        this.#client.send(command, { abortSignal: options.signal }),
      );
    } catch (error) {
      if (error instanceof SendInterrupted) throw error;
      const seenBefore = this.#verifiedAt > Number.NEGATIVE_INFINITY;
      const gone = error instanceof Error && error.name === 'ResourceNotFoundException';
      // Looking up has limits and outages of its own; a bus that was there is sent to, unless it is known to be gone.
      if (gone || !seenBefore) throw new NotVerified('DescribeEventBus failed', { cause: error });
    }
    this.#verifiedAt = Date.now();
  }

  async send(
    entries: readonly EventBridgeEnvelope[],
    options: { readonly signal: AbortSignal },
  ): Promise<readonly SendOutcome[]> {
    assertCall(entries);
    await this.verify(options);
    const command = new PutEventsCommand({
      Entries: entries.map(({ source, detailType, detail }) => ({
        EventBusName: this.#bus,
        Source: source,
        DetailType: detailType,
        Detail: detail,
      })),
    });
    try {
      const answer = await unlessInterrupted(options.signal, () =>
        this.#client.send(command, { abortSignal: options.signal }),
      );
      return entries.map((_, index) => this.#outcome(answer.Entries?.[index]));
    } catch (error) {
      if (entries.length === 1 && refusesContent(error)) {
        return [{ kind: 'rejected', reason: this.classify(error).reason }];
      }
      throw error;
    }
  }

  classify(error: unknown): Failure {
    if (error instanceof SendInterrupted) return { kind: 'interrupted', reason: error.message };
    if (error instanceof NotVerified) {
      const { reason } = classifyError(error.cause, `${this.#subject()}, looked up before the first send`);
      return { kind: 'unavailable', reason, laneWide: true };
    }
    return classifyError(error, this.#subject());
  }

  /** Results come in the order of the entries. Only an event id means that the bus has it, whatever the call's status. */
  #outcome(result: PutEventsResultEntry | undefined): SendOutcome {
    if (result?.EventId) return { kind: 'published' };
    if (result?.ErrorCode) {
      return classifyEntry(result.ErrorCode, result.ErrorMessage, undefined, this.#subject());
    }
    return { kind: 'failed', reason: `${this.#subject()} answered without an id for this message` };
  }

  #subject(): string {
    return `EventBridge bus ${this.#bus}`;
  }
}

/** The bus could not be looked up, so that nothing was sent: no message can be the cause. */
class NotVerified extends Error {}

function checkedSource(source: string | undefined): string {
  if (!source) throw new ConfigurationError('RELAYBOX_SOURCE must be set: EventBridge needs a source');
  if ([...source].length > SOURCE_CHARACTERS || source.startsWith('aws.')) {
    throw new ConfigurationError(
      `RELAYBOX_SOURCE must have at most ${SOURCE_CHARACTERS} characters and not begin with "aws.", which EventBridge keeps for AWS`,
    );
  }
  return source;
}

/** The last look before the SDK: emulators take what AWS refuses, so that only this tells a packing mistake early. */
function assertCall(entries: readonly EventBridgeEnvelope[]): void {
  const bytes = entries.reduce((sum, entry) => sum + entry.bytes, 0);
  if (entries.length < 1 || entries.length > ENTRIES || bytes > eventBridgeBytes) {
    throw new RangeError(
      `an EventBridge call takes 1 to ${ENTRIES} events of ${eventBridgeBytes} bytes together, not ${entries.length} of ${bytes}`,
    );
  }
}
