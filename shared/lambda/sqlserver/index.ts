/** `relaybox/sqlserver/lambda`: Relaybox inside Lambda functions, on SQL Server. */

import type { HandlerContextOf, HandlerOf } from '../bound-handler.ts';
import { inboxHandlerFor } from '../inbox-handler.ts';
import { ingestFor } from '../ingest.ts';
import { relayFor } from '../relay.ts';
import { sqsConsumerFor } from '../sqs-consumer.ts';
import { transactionalFor } from '../transactional.ts';
import { sqlServer } from './engine.ts';
import type { SqlServerTx } from './transaction-client.ts';

export type { MappedMessage, Mapping, SqsRecord } from '../../message/envelope/read.ts';
export { ConfigurationError, Rejected, RetryAfter, TransactionError } from '../../message/errors.ts';
export type { BoundOutbox } from '../bound-outbox.ts';
export { closeConnections } from '../connections.ts';
export type { InboxHandlerFunction, InboxHandlerOptions } from '../inbox-handler.ts';
export type { IngestFunction, IngestFunctionOptions } from '../ingest.ts';
export type { RelayFunction, RelayFunctionOptions } from '../relay.ts';
export type { SqsConsumerFunction, SqsConsumerOptions } from '../sqs-consumer.ts';
export type {
  TransactionalContext,
  TransactionalMiddleware,
  TransactionalOptions,
} from '../transactional.ts';
export type { SqlServerTx } from './transaction-client.ts';

/** What a message handler gets beside its message: `{ tx, outbox, signal, logger }`. */
export type HandlerContext<Tx = SqlServerTx> = HandlerContextOf<Tx>;

/** A message handler, to be written in a file of its own: `const placed: MessageHandler<Order> = async (message, { tx }) => …`. */
export type MessageHandler<Payload = unknown, Tx = SqlServerTx> = HandlerOf<Payload, Tx>;

/**
 * A middy middleware: one transaction per invocation, begun at first use, committed on success, rolled back on an error
 * and on a response with a `statusCode` of 400 or more. After a commit that added messages the relay is woken.
 *
 * @example
 * export const handler = middy()
 *   .use(transactional())
 *   .handler(async (event, { relaybox: { tx, outbox } }) => {
 *     await tx.query('INSERT INTO orders … VALUES (@p1)', [orderId]);
 *     await outbox.add({ destination: 'orders', messageType: 'order.placed', payload: { orderId: '123' } });
 *   });
 */
export const transactional = transactionalFor(sqlServer);

/**
 * Handles the messages of one type that ingest has stored. The handler's writes, the messages it adds and the message's
 * Processed mark commit together, or none of them does.
 *
 * @example
 * export const handler = inboxHandler(
 *   { messageType: 'order.placed', schema: OrderPlaced },
 *   async (message, { tx, outbox }) => {
 *     await tx.query('INSERT INTO invoices … VALUES (@p1)', [message.payload.orderId]);
 *   },
 * );
 */
export const inboxHandler = inboxHandlerFor(sqlServer);

/**
 * Handles messages straight from an SQS queue: the claim of a message and the handler's work commit together, and a
 * duplicate is acknowledged without running.
 *
 * @example
 * export const handler = sqsConsumer({ consumer: 'invoicing' }, async (message, { tx }) => {
 *   await tx.query('INSERT INTO invoices …');
 * });
 */
export const sqsConsumer = sqsConsumerFor(sqlServer);

/** Stores what arrives on an inbox's queue, once. For a function of your own with a custom mapping; the ready one needs none. */
export const createIngest = ingestFor(sqlServer);

/** Carries messages to their destinations. For a function of your own with a custom publisher; the ready one needs none. */
export const createRelay = relayFor(sqlServer);
