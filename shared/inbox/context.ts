import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { Logger } from '../delivery/telemetry.ts';
import { applicationHeaders, hopsOf } from '../message/envelope/names.ts';
import { Rejected } from '../message/errors.ts';
import type { Headers, Message } from '../message/message.ts';
import { type MessageContext, withMessageContext } from '../outbox/context.ts';
import type { Transaction } from '../store/inbox-store.ts';
import { refuseWrongReturn } from './returned.ts';

/** What a handler gets besides its message. */
export interface HandlerTools<Tx, Outbox> {
  /** The transaction that commits with the message's Processed mark, or not at all. */
  readonly tx: Tx;
  /** Adds messages in that transaction. */
  readonly outbox: Outbox;
  /** Aborted shortly before the time is up; what is written after that does not count. */
  readonly signal: AbortSignal;
  /** Names the message in each line. */
  readonly logger: Logger;
}

/** An application's handler. What it throws makes the message be tried again, or as `Rejected` and `RetryAfter` say. */
export type MessageHandler<Payload, Tx, Outbox> = (
  message: Message<Payload>,
  tools: HandlerTools<Tx, Outbox>,
) => Promise<unknown> | unknown;

/** What an application's handler sees of a transaction. */
export interface BoundTransaction<Tx, Outbox> {
  readonly tx: Tx;
  readonly outbox: Outbox;
  /** Called once the transaction has committed, e.g. to wake the relay. Must not reject. */
  committed?(): Promise<void>;
}

/** How a handler is called, whatever the message came by. */
export interface Handling<Payload, Tx, Outbox> {
  readonly handler: MessageHandler<Payload, Tx, Outbox>;
  /** Any Standard Schema. A payload that does not match it is rejected; what the schema makes of it is what the handler gets. */
  readonly schema?: StandardSchemaV1<unknown, Payload> | undefined;
  /** Hand over the payload's text as it is, JSON or not. @default false */
  readonly raw?: boolean | undefined;
  /** Gives the application its view of a transaction: the driver's, and an outbox bound to it. */
  readonly bind: (transaction: Transaction<Tx>) => BoundTransaction<Tx, Outbox>;
}

/** A message before its payload is read. */
export type UnreadMessage = Omit<Message, 'payload' | 'headers'> & {
  /** Relaybox's own headers included. */
  readonly headers: Headers;
  readonly text: string;
};

/** Reads and checks the payload, so that a message no handler could take costs no transaction. Throws `Rejected`. */
export async function readMessage<Payload>(
  unread: UnreadMessage,
  { schema, raw }: Pick<Handling<Payload, never, never>, 'schema' | 'raw'>,
): Promise<Message<Payload>> {
  const { text, headers, ...facts } = unread;
  const parsed = raw ? text : parse(text);
  // Without a schema the application says what its payload is.
  const payload = schema === undefined ? (parsed as Payload) : await validated(schema, parsed);
  return { ...facts, headers: applicationHeaders(headers), payload };
}

/** Calls the handler so that the messages it adds know what caused them. Throws what it throws, or `WrongReturn`. */
export async function callHandler<Payload, Tx, Outbox>(
  handler: MessageHandler<Payload, Tx, Outbox>,
  message: Message<Payload>,
  headers: Headers,
  tools: HandlerTools<Tx, Outbox>,
): Promise<void> {
  const returned = await withMessageContext(contextOf(headers), async () => await handler(message, tools));
  refuseWrongReturn(returned);
}

/** A logger that names the message, by its row where it has one (what `relaybox show` takes), but never its payload or key. */
export function messageLogger(
  logger: Logger,
  message: Pick<Message, 'id' | 'source' | 'messageType' | 'attempt'>,
  rowId?: string,
): Logger {
  const { id: messageId, source, messageType, attempt } = message;
  const about = { ...(rowId !== undefined && { rowId }), source, messageId, messageType, attempt };
  return {
    debug: (text, fields) => logger.debug(text, { ...about, ...fields }),
    info: (text, fields) => logger.info(text, { ...about, ...fields }),
    warn: (text, fields) => logger.warn(text, { ...about, ...fields }),
    error: (text, fields) => logger.error(text, { ...about, ...fields }),
  };
}

function contextOf(headers: Headers): MessageContext {
  const { traceparent } = headers;
  return { hops: hopsOf(headers), ...(traceparent === undefined ? {} : { traceparent }) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the payload.
    throw new Rejected('payload is not JSON; a handler with the option raw takes any text');
  }
}

const SHOWN_ISSUES = 10;

/** Names where the payload is wrong, never what stood there: an error is read by more people than the payload is. */
async function validated<Payload>(
  schema: StandardSchemaV1<unknown, Payload>,
  payload: unknown,
): Promise<Payload> {
  const result = await schema['~standard'].validate(payload);
  if (result.issues === undefined) return result.value;
  const paths = result.issues.map((issue) => pathOf(issue.path));
  const shown = [...new Set(paths)].slice(0, SHOWN_ISSUES).join(', ');
  throw new Rejected(
    `payload does not match the handler's schema at ${shown} (${paths.length} ${paths.length === 1 ? 'issue' : 'issues'})`,
  );
}

function pathOf(path: StandardSchemaV1.Issue['path']): string {
  const steps = (path ?? []).map((step) => (typeof step === 'object' ? step.key : step));
  const text = steps.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  return text === '' ? 'its top' : text.replace(/^\./, '').slice(0, 200);
}
