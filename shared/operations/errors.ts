import { RelayboxError } from '../message/errors.ts';

/** A request of an operator was refused before anything was done: a command or a field is not as it must be. */
export class RequestRefused extends RelayboxError {
  readonly code = 'RELAYBOX_REQUEST_REFUSED';
}
