import type { Telemetry } from '../delivery/telemetry.ts';
import type { ClaimedInboxMessage, InboxStore } from '../store/inbox-store.ts';
import { callHandler, type Handling, messageLogger, readMessage } from './context.ts';
import { type AttemptEnd, type AttemptOptions, transact } from './transact.ts';

/** What handling one message takes. */
export interface HandleMessageOptions<Payload, Tx, Outbox>
  extends Handling<Payload, Tx, Outbox>,
    AttemptOptions<Tx> {
  readonly store: Pick<InboxStore<Tx>, 'begin' | 'reachable' | 'markProcessed'>;
  readonly telemetry: Telemetry;
}

/**
 * Handles one claimed message: the handler's writes, its outbox messages and the Processed mark commit together or not
 * at all. Answers the types that come next in its key; `undone` where the lease was lost. Never rejects.
 */
export async function handleMessage<Payload, Tx, Outbox>(
  claimed: ClaimedInboxMessage,
  options: HandleMessageOptions<Payload, Tx, Outbox>,
): Promise<AttemptEnd<readonly string[]>> {
  const { store, handler, bind, telemetry } = options;
  let committed: (() => Promise<void>) | undefined;
  const end = await transact<Tx, readonly string[]>(options, async (begin, signal) => {
    // Before there is a transaction: a message that no handler could take costs none.
    const message = await readMessage(unread(claimed), options);
    const transaction = await begin();
    const bound = bind(transaction);
    committed = async () => await bound.committed?.();
    const logger = messageLogger(telemetry.logger, message, claimed.rowId);
    const tools = { tx: bound.tx, outbox: bound.outbox, signal, logger };
    await callHandler(handler, message, claimed.headers, tools);
    const marked = await store.markProcessed(transaction, claimed);
    return { commit: marked !== undefined, value: marked?.nextTypes ?? [] };
  });
  if (end.kind === 'committed') await committed?.();
  return end;
}

function unread(claimed: ClaimedInboxMessage) {
  const { externalMessageId, source, messageType, headers, attempt, createdAt, payload } = claimed;
  return {
    id: externalMessageId,
    source,
    messageType,
    headers,
    correlationId: claimed.correlationId ?? undefined,
    partitionKey: claimed.partitionKey ?? undefined,
    attempt,
    createdAt,
    text: payload,
  };
}
