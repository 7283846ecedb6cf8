import type { AddResult, OutboxRow, OutgoingMessage } from '../message/message.ts';

declare const claimed: unique symbol;

/** A message that this relay may publish while its bucket's lease runs. Only a store makes one, and only one of these can be settled. */
export interface ClaimedOutboxMessage extends OutgoingMessage {
  readonly [claimed]: true;
  readonly destination: string;
  readonly bucket: number;
  /** Place in the lane's order: digits of a 64-bit number, or null where another program's row has none yet. Never computed with. */
  readonly sequence: string | null;
  /** Failures of the message itself so far. */
  readonly retryCount: number;
  readonly maxRetries: number;
  /** Bytes of the payload as stored. */
  readonly payloadBytes: number;
}

/** What happens behind a message that is Failed for good: its key waits for a person, or goes on. */
export type OnFailedKey = 'block' | 'skip';

/** What becomes of a row that was published. */
export type AfterSuccess = 'keep' | 'delete' | 'archive';

/** The lease of some buckets of one lane. The token is new at each taking. */
export interface LaneLease {
  readonly destination: string;
  readonly token: string;
  readonly buckets: readonly number[];
}

/** A lane that has work due now, as the database sees it. */
export interface DueLane {
  readonly destination: string;
  /**
   * - `ready`: take leases and go.
   * - `probe`: the breaker's pause is over; one relay may win the probe.
   *
   * A lane that is paused by a person, or whose breaker's pause still runs, is not listed.
   */
  readonly state: 'ready' | 'probe';
}

/** What one read may bring. */
export interface ReadRequest {
  /** At most so many messages. */
  readonly limit: number;
  /** At most so many payload bytes, but always at least one message. */
  readonly maxBytes: number;
  /**
   * Ids not to take: what is under way already, or what a probe has tried in vain. There is no cursor: a row may commit
   * after others with a higher sequence, and a later message of its key must not pass it.
   */
  readonly except?: readonly string[];
  /** Only these ids, where they are due: what a probe has proved guilty. */
  readonly only?: readonly string[];
  /** The probe in whose name an open lane is read; without it an open lane answers nothing, like a paused one. */
  readonly probe?: Probe;
}

/** What a read brought. */
export interface ReadResult {
  readonly messages: readonly ClaimedOutboxMessage[];
  /** True where the read stopped at its limit, so that more may be due. */
  readonly more: boolean;
}

/** A failure of the message itself, to be tried again while it has retries left. */
export interface FailedAttempt {
  readonly message: ClaimedOutboxMessage;
  readonly reason: string;
  /** Seconds until the next attempt; the database adds them to its own clock. */
  readonly retryInSeconds: number;
}

/** A message that can never be delivered: it ends in Failed at once. */
export interface RejectedMessage {
  readonly message: ClaimedOutboxMessage;
  readonly reason: string;
}

/** Outcomes of one batch. A message that is in none of the lists stays as it is, due. */
export interface Settlement {
  readonly published: readonly ClaimedOutboxMessage[];
  readonly failed: readonly FailedAttempt[];
  readonly rejected: readonly RejectedMessage[];
}

/** How outcomes are written. */
export interface SettleOptions {
  /** The lease is extended to so many milliseconds from now, by the database's clock. */
  readonly leaseMs: number;
  readonly afterSuccess: AfterSuccess;
  readonly onFailedKey: OnFailedKey;
}

/** What a settle changed, and what it could not. */
export interface SettleResult {
  /** Ids that were settled. */
  readonly settled: readonly string[];
  /** Of those, ids that ended in Failed. */
  readonly ended: readonly string[];
  /** Ids asked for and not changed: the lease was lost, or a person was quicker. */
  readonly lost: readonly string[];
  /** Buckets whose lease still is ours, now extended. */
  readonly buckets: readonly number[];
  /** Buckets in which followers of a key became due by this settle: there is more to read. */
  readonly freed: readonly number[];
}

/** The breaker's probe: one message may be tried while the lane is open. */
export interface Probe {
  readonly destination: string;
  readonly token: string;
  /** Failures in a row, this opening included. */
  readonly failures: number;
  /** Messages that earlier probes of this opening tried in vain. */
  readonly tried: readonly string[];
}

/**
 * The seed's `IOutboxRepository`, grown: what a relay needs of a database. Every method is one or two statements on
 * autocommit; instants are computed by the database from durations. `relaybox/testing` has the suite each store passes.
 */
export interface OutboxStore {
  /** Adds in a transaction of the store's own: for programs without one. Producers use `outbox.add(tx, …)`. */
  add(rows: readonly OutboxRow[]): Promise<readonly AddResult[]>;

  /** Lanes with due work, found without reading their rows. */
  dueLanes(): Promise<readonly DueLane[]>;

  /**
   * Leases up to `limit` free buckets of the lane that have due rows. Undefined where there is none.
   * @param request.buckets only these, whether due or not (for operators and probes)
   */
  lease(request: {
    readonly destination: string;
    readonly limit: number;
    readonly leaseMs: number;
    readonly buckets?: readonly number[];
  }): Promise<LaneLease | undefined>;

  /** Reads due messages of the leased buckets, in order, without writing to them; steps over blocked keys. */
  read(lease: LaneLease, request: ReadRequest): Promise<ReadResult>;

  /** Writes the outcomes and extends the lease, where the token still holds it. */
  settle(lease: LaneLease, settlement: Settlement, options: SettleOptions): Promise<SettleResult>;

  /** Gives buckets back at once. A lease that is no longer ours is left alone. */
  release(lease: LaneLease): Promise<void>;

  /** Pauses the lane after a failure of kind `unavailable`, where it isn't open already; answers whether it did. `tried`: what was sent alone and failed. */
  openLane(request: {
    readonly destination: string;
    readonly reason: string;
    readonly pauseSeconds: number;
    readonly tried: readonly string[];
  }): Promise<boolean>;

  /** Wins the probe of an open lane whose pause is over, or undefined. */
  takeProbe(request: { readonly destination: string; readonly leaseMs: number }): Promise<Probe | undefined>;

  /** The probe passed: the lane is closed again. Fenced by the probe's token. */
  probePassed(probe: Probe): Promise<boolean>;

  /** The probe failed: the lane stays open for longer. Fenced by the probe's token. */
  probeFailed(
    probe: Probe,
    request: { readonly reason: string; readonly pauseSeconds: number; readonly tried: readonly string[] },
  ): Promise<boolean>;

  /** Gives the probe back untried: no message could be had, or the time was up. Fenced by the probe's token. */
  probeAbandoned(probe: Probe): Promise<void>;

  /** Where the given messages are, for those that are unfinished. */
  bucketsOf(
    ids: readonly string[],
  ): Promise<readonly { readonly id: string; readonly destination: string; readonly bucket: number }[]>;

  /** Seconds until the next waiting message, breaker's probe or running foreign lease comes due; undefined where nothing waits. */
  secondsToNextDue(): Promise<number | undefined>;
}

/** Marks a message as claimed. For store implementations only. */
export function asClaimed(fields: Omit<ClaimedOutboxMessage, typeof claimed>): ClaimedOutboxMessage {
  return fields as ClaimedOutboxMessage;
}
