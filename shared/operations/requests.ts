/** One of the two tables of messages. */
export type Box = 'outbox' | 'inbox';

/** A lane as a person names it: a destination of the outbox, or a message type of the inbox. */
export type LaneName =
  | { readonly box: 'outbox'; readonly destination: string }
  | { readonly box: 'inbox'; readonly consumer: string; readonly messageType: string };

/** Lanes with their figures. */
export interface StatusRequest {
  readonly command: 'status';
}

/** One page of Failed messages, lane by lane. */
export interface FailedRequest {
  readonly command: 'failed';
  readonly box: Box;
  /** Only this lane. @default all lanes of the box */
  readonly lane: LaneName | null;
  /** At most so many rows, 1–1000. */
  readonly limit: number;
  /** The page's `next` of the answer before. */
  readonly after: string | null;
}

/** One message, by its row's id or by the identity that its sender gave it. */
export interface ShowRequest {
  readonly command: 'show';
  readonly by:
    | { readonly id: string }
    | {
        readonly source: string;
        readonly externalMessageId: string;
        /** @default all consumers */
        readonly consumer: string | null;
      };
  /** Payloads are shown only where they are asked for. */
  readonly payload: boolean;
}

/** Which messages: some by id, wherever they are, or all Failed ones of a lane, in pages. */
export type Selection =
  | { readonly ids: readonly string[] }
  | { readonly lane: LaneName; readonly limit: number; readonly after: string | null };

/** Gives Failed messages another try, with their retries anew. Ingest reads those again that it could not read before. */
export interface RequeueRequest {
  readonly command: 'requeue';
  readonly select: Selection;
  readonly dryRun: boolean;
  /** How long to wait for a bucket that a relay holds. */
  readonly waitSeconds: number;
}

/** Ends messages in Discarded, for good. By id: any that isn't ended or running; by lane: the Failed ones. */
export interface DiscardRequest {
  readonly command: 'discard';
  readonly select: Selection;
  readonly reason: string;
  readonly by: string;
  readonly dryRun: boolean;
  readonly waitSeconds: number;
}

/** Stops a lane until it is resumed, or for so long. */
export interface PauseRequest {
  readonly command: 'pause';
  readonly lane: LaneName;
  readonly by: string;
  readonly reason: string;
  /** @default until it is resumed */
  readonly seconds: number | null;
}

/** Lets a paused lane go on. */
export interface ResumeRequest {
  readonly command: 'resume';
  readonly lane: LaneName;
}

/** What retention may remove: ended messages of a box, or receipts of direct consumers. */
export type Purgeable = Box | 'receipts';

/** Removes one batch of Processed and Discarded rows, oldest end first. */
export interface PurgeRequest {
  readonly command: 'purge';
  readonly from: Purgeable;
  readonly olderThanDays: number;
  readonly dryRun: boolean;
  /** At most so many rows in this call, 1–10000. */
  readonly limit: number;
}

/** Looks for what is wrong. */
export interface DoctorRequest {
  readonly command: 'doctor';
}

/** Ready or not, from evidence. */
export interface HealthRequest {
  readonly command: 'health';
  /** A lane's oldest due message may be so old. */
  readonly oldestDueSeconds: number;
  /** A worker's last successful cycle may be so old. */
  readonly staleSeconds: number;
}

/** A request of an operator, as the command line and the `maintain` function take it. Parse one with `parseRequest`. */
export type OperatorRequest =
  | StatusRequest
  | FailedRequest
  | ShowRequest
  | RequeueRequest
  | DiscardRequest
  | PauseRequest
  | ResumeRequest
  | PurgeRequest
  | DoctorRequest
  | HealthRequest;

/** Names of the commands. */
export type Command = OperatorRequest['command'];
