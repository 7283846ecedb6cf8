/** Every error of Relaybox: `code` is stable and listed in `docs/errors.md`, the message says what to do. */
export abstract class RelayboxError extends Error {
  abstract readonly code: string;
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A message was refused before it was written: it could never have been delivered. */
export class MessageRefused extends RelayboxError {
  readonly code = 'RELAYBOX_MESSAGE_REFUSED';
  /** The field at fault, e.g. `payload` or `headers.tenant`. */
  readonly field: string;
  /** What the field may be, e.g. `at most 200 characters`. */
  readonly limit: string;
  /** What it was, shortened; never the payload itself. */
  readonly actual: string;

  constructor(field: string, limit: string, actual: string) {
    super(`${field} was refused: it must be ${limit}, but is ${actual}`);
    this.field = field;
    this.limit = limit;
    this.actual = actual;
  }
}

/** A setting is missing or contradicts another. */
export class ConfigurationError extends RelayboxError {
  readonly code = 'RELAYBOX_CONFIGURATION';
}

/** The database lacks the schema version or a grant that this build needs. */
export class SchemaError extends RelayboxError {
  readonly code = 'RELAYBOX_SCHEMA';
}

/** Work was refused because its lease had run out: another worker holds the message now, or will. */
export class LeaseLost extends RelayboxError {
  readonly code = 'RELAYBOX_LEASE_LOST';
}

/** The database could not be reached, or did not answer in time. What was asked for may have happened all the same. */
export class DatabaseUnavailable extends RelayboxError {
  readonly code = 'RELAYBOX_DATABASE_UNAVAILABLE';
}

/** A transaction of Relaybox's was used after its end, was ended by somebody else, or could not be committed as a whole. */
export class TransactionError extends RelayboxError {
  readonly code = 'RELAYBOX_TRANSACTION';
}

/** A handler returned what says that it failed, instead of throwing it. Its attempt counts as failed. */
export class WrongReturn extends RelayboxError {
  readonly code = 'RELAYBOX_WRONG_RETURN';
}

/** Thrown by a handler: end this message in Failed at once, with a reason a person can act on. */
export class Rejected extends RelayboxError {
  readonly code = 'RELAYBOX_REJECTED';
}

/** Thrown by a handler: fail this attempt, and try again after so many seconds. */
export class RetryAfter extends RelayboxError {
  readonly code = 'RELAYBOX_RETRY_AFTER';
  /** Seconds until the next attempt, 0 or more. */
  readonly seconds: number;

  constructor(seconds: number, reason = `the handler asked for a retry after ${seconds} s`) {
    super(reason);
    if (!Number.isFinite(seconds) || seconds < 0) {
      throw new RangeError(`RetryAfter takes seconds, 0 or more, but got ${seconds}`);
    }
    this.seconds = seconds;
  }
}
