import type { Telemetry } from '../delivery/telemetry.ts';
import type { BoundTransaction, HandlerTools, Handling, MessageHandler } from '../inbox/context.ts';
import type { ThrowsFailures } from '../inbox/returned.ts';
import type { Message } from '../message/message.ts';
import type { Transaction } from '../store/inbox-store.ts';
import { type BoundOutbox, unitOutbox } from './bound-outbox.ts';
import type { Engine, EngineConnections } from './engine.ts';
import { HandlerUnit } from './handler-unit.ts';

/** What a message handler gets beside its message, on an engine. */
export type HandlerContextOf<Tx> = HandlerTools<Tx, BoundOutbox>;

/** An application's message handler, on an engine. */
export type HandlerOf<Payload, Tx> = MessageHandler<Payload, Tx, BoundOutbox>;

/** The same where it is given: what only makes sense thrown doesn't compile as what it returns. */
export type GivenHandler<Payload, Tx, Returned> = ((
  message: Message<Payload>,
  context: HandlerContextOf<Tx>,
) => Returned) &
  ThrowsFailures<Returned>;

/** What binding a handler takes. */
export interface BindOptions<Payload, Tx> {
  readonly engine: Engine<Tx>;
  readonly connections: EngineConnections<Tx>;
  readonly telemetry: Telemetry;
  /** Wakes the relay after a commit that added messages. */
  readonly wake: () => Promise<void>;
  /** Whether its messages take a lock per partition key. */
  readonly serializeKeys: boolean | undefined;
  readonly handler: HandlerOf<Payload, Tx>;
}

/** The handler as the inbox calls it: with the driver's transaction guarded, and an outbox bound to it. */
export function boundHandler<Payload, Tx>(
  options: BindOptions<Payload, Tx>,
): Pick<Handling<Payload, Tx, BoundOutbox>, 'handler' | 'bind'> {
  const { engine, connections, telemetry, wake, handler, serializeKeys } = options;
  const producing = serializeKeys === undefined ? {} : { serializeKeys };
  const units = new WeakMap<BoundOutbox, HandlerUnit<Tx>>();
  return {
    bind(transaction: Transaction<Tx>): BoundTransaction<Tx, BoundOutbox> {
      const unit = new HandlerUnit(transaction);
      const { outbox, committed } = unitOutbox(unit, { telemetry, connections, wake, producing });
      units.set(outbox, unit);
      return { tx: engine.lazy(unit), outbox, committed };
    },
    async handler(message, tools) {
      const returned = await handler(message, tools);
      units.get(tools.outbox)?.close();
      return returned;
    },
  };
}
