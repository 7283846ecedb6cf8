import type { Box, LaneName, Purgeable } from './requests.ts';

/** A count that stops counting: `more` says that there are more than `count`. Counting never reads history. */
export interface Count {
  readonly count: number;
  readonly more: boolean;
}

/** A person's pause. Instants are ISO 8601, by the database's clock, for display only. */
export interface Pause {
  readonly by: string | null;
  readonly reason: string | null;
  readonly since: string;
  /** Null: until somebody resumes it. */
  readonly until: string | null;
}

/** A breaker that is open: the destination was unavailable. */
export interface Breaker {
  readonly failures: number;
  readonly since: string | null;
  /** When the next probe may be sent. */
  readonly until: string;
  readonly lastError: string | null;
}

/** One lane's figures. Every unfinished or Failed message is in exactly one of due, waiting, held, leased, failed. */
export interface LaneStatus {
  readonly lane: LaneName;
  /** `paused` by a person, `open` by its breaker, else `ready`. */
  readonly state: 'ready' | 'paused' | 'open';
  readonly pause: Pause | null;
  readonly breaker: Breaker | null;
  /** Could be taken now. */
  readonly due: Count;
  /** Age of the oldest due message; null where none is due. */
  readonly oldestDueSeconds: number | null;
  /** Have a time to come back at. */
  readonly waiting: Count;
  /** Stand behind an earlier message of their key. */
  readonly held: Count;
  /** Inbox: running messages. Outbox: rows that another program holds; a relay leases buckets, see `leasedBuckets`. */
  readonly leased: Count;
  /** Outbox only, else 0. */
  readonly leasedBuckets: number;
  /** Leases that ran out, so that a worker must have been killed or frozen; the next one takes them over. */
  readonly expiredLeases: Count;
  readonly failed: Count;
  /** Keys that a Failed message blocks. */
  readonly blockedKeys: Count;
  /** Seconds since a handler last asked for work; null where none did yet, and for the outbox. */
  readonly lastClaimSeconds: number | null;
}

/** Answer to `status`. */
export interface StatusResponse {
  readonly command: 'status';
  readonly lanes: readonly LaneStatus[];
  /** More lanes exist than are listed. */
  readonly more: boolean;
}

/** A Failed message, without its payload. */
export interface FailedMessage {
  readonly id: string;
  readonly lane: LaneName;
  readonly messageType: string;
  /** Inbox only, else null. */
  readonly source: string | null;
  readonly externalMessageId: string | null;
  readonly partitionKey: string | null;
  readonly correlationId: string | null;
  readonly retryCount: number;
  readonly maxRetries: number;
  readonly createdAt: string;
  readonly failedAt: string | null;
  /** Its key waits for a person. */
  readonly blocksKey: boolean;
  /** At most 500 characters; `show` has it whole. */
  readonly lastError: string | null;
}

/** Answer to `failed`: one page. */
export interface FailedResponse {
  readonly command: 'failed';
  readonly messages: readonly FailedMessage[];
  /** Give this as `after` for the next page; null at the end. */
  readonly next: string | null;
}

/** A message with all that is known of it. */
export interface ShownMessage {
  readonly box: Box;
  readonly id: string;
  readonly lane: LaneName;
  readonly state: 'Pending' | 'Processing' | 'Processed' | 'Failed' | 'Discarded' | string;
  /** What it is doing, in a few words: `due`, `held behind an earlier message of its key`, … */
  readonly situation: string;
  readonly messageType: string;
  readonly source: string | null;
  readonly externalMessageId: string | null;
  readonly partitionKey: string | null;
  /** Digits of a 64-bit number. */
  readonly sequence: string | null;
  /** Outbox only, else null. */
  readonly bucket: number | null;
  readonly correlationId: string | null;
  readonly headers: unknown;
  readonly retryCount: number;
  readonly maxRetries: number;
  readonly createdAt: string;
  readonly nextAttemptAt: string | null;
  readonly lockedUntil: string | null;
  readonly endedAt: string | null;
  readonly lastError: string | null;
  /** In UTF-8; on SQL Server its UTF-16 code units, which are as many where the text is ASCII. */
  readonly payloadBytes: number;
  /** Only where it was asked for. */
  readonly payload?: string;
}

/** Answer to `show`. */
export interface ShowResponse {
  readonly command: 'show';
  /** Empty where there is none; more than one where several consumers have a copy. */
  readonly messages: readonly ShownMessage[];
}

/** A message that a decision changed. */
export interface Changed {
  readonly id: string;
  readonly box: Box;
}

/** A message that a decision left as it is. */
export interface Refused {
  readonly id: string;
  /** What was in the way, and what to do. */
  readonly reason: string;
}

/** Answer to `requeue` and `discard`. Every message asked for is in one of the lists. */
export interface FateResponse<Name extends 'requeue' | 'discard'> {
  readonly command: Name;
  readonly dryRun: boolean;
  /** Changed; with `dryRun`: would be changed. */
  readonly changed: readonly Changed[];
  readonly refused: readonly Refused[];
  /** A lane's further messages: give this as `after`; null at the end. */
  readonly next: string | null;
}

/** Answer to `pause` and `resume`. */
export interface LaneResponse<Name extends 'pause' | 'resume'> {
  readonly command: Name;
  readonly lane: LaneName;
  /** False where a resumed lane was not paused. */
  readonly changed: boolean;
  readonly pause: Pause | null;
}

/** Answer to `purge`: one bounded call. */
export interface PurgeResponse {
  readonly command: 'purge';
  readonly from: Purgeable;
  readonly dryRun: boolean;
  /** Removed; with `dryRun`: would be removed. */
  readonly removed: Count;
}

/** `problem`: messages don't flow, or will not. `warning`: look at it soon. `unknown`: the check could not look. */
export type Severity = 'ok' | 'unknown' | 'warning' | 'problem';

/** What one check of the doctor found. */
export interface Finding {
  /** Stable name of the check, e.g. `invalid-index`; `docs/operations.md` has a paragraph for each. */
  readonly check: string;
  readonly severity: Severity;
  /** What was found, and on what evidence. */
  readonly what: string;
  /** What to do; empty where nothing is wrong. */
  readonly todo: string;
}

/** Answer to `doctor`, the worst first. */
export interface DoctorResponse {
  readonly command: 'doctor';
  readonly worst: Severity;
  readonly findings: readonly Finding[];
}

/** One piece of evidence. */
export interface HealthCheck {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** Answer to `health`. */
export interface HealthResponse {
  readonly command: 'health';
  readonly ready: boolean;
  readonly checks: readonly HealthCheck[];
}

/** What each command answers. */
export interface Responses {
  readonly status: StatusResponse;
  readonly failed: FailedResponse;
  readonly show: ShowResponse;
  readonly requeue: FateResponse<'requeue'>;
  readonly discard: FateResponse<'discard'>;
  readonly pause: LaneResponse<'pause'>;
  readonly resume: LaneResponse<'resume'>;
  readonly purge: PurgeResponse;
  readonly doctor: DoctorResponse;
  readonly health: HealthResponse;
}

/** Any answer. */
export type OperatorResponse = Responses[keyof Responses];
