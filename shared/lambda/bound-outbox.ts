import type { MetricName, Telemetry } from '../delivery/telemetry.ts';
import { RelayboxError, SchemaError } from '../message/errors.ts';
import type { AddResult, NewMessage } from '../message/message.ts';
import type { AddResults } from '../outbox/producer.ts';
import type { Transaction } from '../store/inbox-store.ts';
import type { EngineConnections, UnitProducerOptions } from './engine.ts';

/** The outbox inside a transaction that is Relaybox's to end. */
export interface BoundOutbox {
  /** Adds one message; it is delivered if the transaction commits. */
  add(message: NewMessage): Promise<AddResult>;
  /** Adds many in one round trip. */
  add<const Messages extends readonly NewMessage[]>(messages: Messages): Promise<AddResults<Messages>>;
}

/** Work in one transaction: `transactional()`'s, or a handler's. */
export interface OpenUnit<Tx> {
  /** The transaction; rejects once it has ended. */
  begin(): Promise<Transaction<Tx>>;
  /** Counts a statement as running until it has settled. */
  track<T>(statement: Promise<T>): Promise<T>;
}

/** The outbox of one unit of work, and what is to be done once that is committed. */
export interface UnitOutbox {
  readonly outbox: BoundOutbox;
  /** Counts and wakes for what was added, if anything was. Never rejects. */
  committed(): Promise<void>;
}

/** What an outbox of a unit of work is made of. */
export interface UnitOutboxOptions<Tx> {
  readonly telemetry: Telemetry;
  readonly connections: Pick<EngineConnections<Tx>, 'producer' | 'check'>;
  /** Wakes the relay after a commit that added messages. */
  readonly wake: () => Promise<void>;
  /** How messages are added, as far as the application or its event says. */
  readonly producing: Pick<UnitProducerOptions, 'serializeKeys' | 'traceparent'>;
}

/**
 * Binds the producer to a unit of work. What it counts is kept back until the commit: a message that was rolled back
 * was never added, and a wake for it would find nothing.
 */
export function unitOutbox<Tx>(unit: OpenUnit<Tx>, options: UnitOutboxOptions<Tx>): UnitOutbox {
  const { telemetry, connections, wake, producing: own } = options;
  const added: [MetricName, number, string | undefined][] = [];
  const producing = connections.producer({
    ...own,
    wake,
    telemetry: { logger: telemetry.logger, count: (...count) => added.push(withLane(count)) },
  });
  const bound = async (given: NewMessage | readonly NewMessage[]): Promise<unknown> => {
    const { executor } = await unit.begin();
    try {
      return isMany(given) ? await producing.add(executor, given) : await producing.add(executor, given);
    } catch (error) {
      throw await explained(error, connections);
    }
  };
  return {
    outbox: {
      add: ((given: NewMessage | readonly NewMessage[]) => unit.track(bound(given))) as BoundOutbox['add'],
    },
    async committed() {
      if (added.length === 0) return;
      for (const count of added) telemetry.count(...count);
      await producing.wake();
    },
  };
}

/** An application's function doesn't check the schema at its start. Where adding fails, what is missing is looked for. */
async function explained(error: unknown, { check }: { check(worker: 'producer'): Promise<void> }) {
  if (error instanceof RelayboxError) return error;
  try {
    await check('producer');
    return error;
  } catch (found) {
    return found instanceof SchemaError ? found : error;
  }
}

function withLane(count: Parameters<Telemetry['count']>): [MetricName, number, string | undefined] {
  return [count[0], count[1], count[2]];
}

// `Array.isArray` alone doesn't tell a read-only array from its element.
function isMany(given: NewMessage | readonly NewMessage[]): given is readonly NewMessage[] {
  return Array.isArray(given);
}
