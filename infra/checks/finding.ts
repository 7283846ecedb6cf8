/** What is checked; stable names, by which a finding is accepted and documented. */
export const checkNames = [
  'lease',
  'visibility',
  'inbox-retention',
  'receipt-retention',
  'connections',
  'receive-count',
  'batch-failures',
  'reserved-concurrency',
  'egress',
  'dead-letter-queue',
  'handlers',
  'event-bus-key',
  'order',
  'sweep-retries',
  'auto-pause',
] as const;

/** One of {@link checkNames}. */
export type CheckName = (typeof checkNames)[number];

/** `accepted` is a fail or an unknown that somebody answers for, with a reason. */
export type Answer = 'pass' | 'fail' | 'warning' | 'unknown' | 'accepted';

/** What one check says of one thing. */
export interface Finding {
  readonly check: CheckName;
  readonly answer: Answer;
  /** What it is about: a construct's path, a destination, a message type. */
  readonly subject: string;
  /** What was found, with the values. */
  readonly message: string;
  /** What to do, where the answer isn't `pass`. */
  readonly fix?: string;
  /** The prop that supplies the fact, where the answer is `unknown`. */
  readonly prop?: string;
}

/** Somebody's word that a finding is all right here. */
export interface AcceptedFinding {
  readonly check: CheckName;
  /** Only this subject. @default every subject of the check */
  readonly subject?: string;
  readonly reason: string;
}

/** The answers of one check, so that each names it once. */
export function answers(check: CheckName) {
  return {
    pass: (subject: string, message: string): Finding => ({ check, answer: 'pass', subject, message }),
    fail: (subject: string, message: string, fix: string): Finding => ({
      check,
      answer: 'fail',
      subject,
      message,
      fix,
    }),
    warning: (subject: string, message: string, fix: string): Finding => ({
      check,
      answer: 'warning',
      subject,
      message,
      fix,
    }),
    /** `prop` says where the fact is given, as one would write it. */
    unknown: (subject: string, message: string, prop: string): Finding => ({
      check,
      answer: 'unknown',
      subject,
      message,
      fix: `say so with ${prop}`,
      prop,
    }),
  };
}
