import { WrongReturn } from '../message/errors.ts';

/** What says that a message was not handled, where it is thrown; returned it would be taken for success. */
type ToBeThrown = Error | { readonly batchItemFailures: unknown };

/**
 * Beside the type of a handler that returns this: anything goes, since nothing of it is read and it may be the result of
 * its last query, but an error or the answer of an SQS function doesn't compile. It is to be thrown.
 */
export type ThrowsFailures<Returned> = 0 extends 1 & Awaited<Returned>
  ? unknown // any
  : [Extract<Awaited<Returned>, ToBeThrown>] extends [never]
    ? unknown
    : { readonly 'throw it: what a handler returns is not read': never };

/**
 * Throws `WrongReturn` where what a handler returned says that it failed: types can't see all of it, and taken for
 * success the message would be gone.
 */
export function refuseWrongReturn(returned: unknown): void {
  if (typeof returned !== 'object' || returned === null) return;
  if (returned instanceof Error) {
    throw new WrongReturn(
      `the handler returned an error instead of throwing it (${returned.name}: ${returned.message}): throw it`,
      { cause: returned },
    );
  }
  const { batchItemFailures, statusCode } = returned as Readonly<Record<string, unknown>>;
  if (Array.isArray(batchItemFailures) && batchItemFailures.length > 0) {
    throw new WrongReturn(
      'the handler returned batchItemFailures, which nobody reads: Relaybox answers SQS itself; throw to have the message tried again',
    );
  }
  if (typeof statusCode === 'number' && statusCode >= 400) {
    throw new WrongReturn(
      `the handler returned a response with statusCode ${statusCode}, which nobody reads: throw to have the message tried again`,
    );
  }
}
