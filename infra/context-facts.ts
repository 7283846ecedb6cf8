import { Duration } from 'aws-cdk-lib';
import { type AcceptedFinding, checkNames } from './checks/index.ts';
import type { KnownQueueFacts } from './constructs/queue-facts.ts';

/** Where a problem is told: what is wrong, and what it must be. */
export type Problem = (name: string, must: string) => void;

const ENCRYPTIONS = ['none', 'sqs', 'kms-managed', 'kms'] as const;

/**
 * What the context says of a queue that doesn't tell: `{ "visibilitySeconds": 180, "retentionDays": 4, "encryption": "sqs",
 * "deadLetterQueue": { "maxReceiveCount": 5, "retentionDays": 14 } }`, or `"deadLetterQueue": false` where there is none.
 */
export function readQueueFacts(name: string, value: unknown, problem: Problem): KnownQueueFacts | undefined {
  if (value === undefined) return undefined;
  const facts = new Facts(name, value, problem);
  const known = {
    fifo: facts.flag('fifo'),
    visibilityTimeout: seconds(facts.number('visibilitySeconds')),
    retention: days(facts.number('retentionDays')),
    encryption: facts.choice('encryption', ENCRYPTIONS),
    keyAllowsEvents: facts.flag('keyAllowsEvents'),
    fedByEventBridge: facts.flag('fedByEventBridge'),
    maxMessageSizeBytes: facts.number('maxMessageSizeBytes'),
    ...deadLetterQueue(name, facts, problem),
  };
  facts.finish();
  return there(known);
}

/** Findings that whoever deploys answers for: `[{ "check": "visibility", "subject": "…", "reason": "…" }]`. */
export function readAcceptedFindings(value: unknown, problem: Problem): AcceptedFinding[] {
  if (!Array.isArray(value)) {
    problem('acceptedFindings', 'a list such as [{ "check": "visibility", "reason": "…" }]');
    return [];
  }
  return value.flatMap((each: unknown, index): AcceptedFinding[] => {
    const facts = new Facts(`acceptedFindings[${index}]`, each, problem);
    const accepted = {
      check: facts.choice('check', checkNames),
      subject: facts.text('subject'),
      reason: facts.text('reason'),
    };
    facts.finish();
    const { check, reason } = accepted;
    if (check === undefined || reason === undefined) {
      problem(`acceptedFindings[${index}]`, 'given a check and a reason');
      return [];
    }
    return [{ ...there(accepted), check, reason }];
  });
}

function deadLetterQueue(name: string, facts: Facts, problem: Problem): KnownQueueFacts {
  const value = facts.value('deadLetterQueue');
  if (value === undefined) return {};
  if (value === false) return { noDeadLetterQueue: true };
  const dead = new Facts(`${name}.deadLetterQueue`, value, problem);
  const known = {
    maxReceiveCount: dead.number('maxReceiveCount'),
    retention: days(dead.number('retentionDays')),
    fifo: dead.flag('fifo'),
  };
  dead.finish();
  return { deadLetterQueue: there(known) };
}

/** An object of the context's JSON, whose fields are each read once. */
class Facts {
  readonly #name: string;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #read = new Set<string>();
  readonly #problem: Problem;

  constructor(name: string, value: unknown, problem: Problem) {
    this.#name = name;
    this.#problem = problem;
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    this.#fields = isObject ? (value as Record<string, unknown>) : {};
    if (!isObject) problem(name, 'an object');
  }

  value(field: string): unknown {
    this.#read.add(field);
    return this.#fields[field];
  }

  number(field: string): number | undefined {
    const value = this.value(field);
    if (value === undefined || (typeof value === 'number' && value >= 0)) return value;
    this.#problem(`${this.#name}.${field}`, 'a number');
    return undefined;
  }

  flag(field: string): boolean | undefined {
    const value = this.value(field);
    if (value === undefined || typeof value === 'boolean') return value;
    this.#problem(`${this.#name}.${field}`, 'true or false');
    return undefined;
  }

  text(field: string): string | undefined {
    const value = this.value(field);
    if (value === undefined || (typeof value === 'string' && value !== '')) return value;
    this.#problem(`${this.#name}.${field}`, 'a text');
    return undefined;
  }

  choice<const T extends string>(field: string, choices: readonly T[]): T | undefined {
    const text = this.text(field);
    const choice = choices.find((known) => known === text);
    if (text !== undefined && choice === undefined) {
      this.#problem(`${this.#name}.${field}`, `one of ${choices.join(', ')}, not ${text}`);
    }
    return choice;
  }

  finish(): void {
    for (const field of Object.keys(this.#fields)) {
      if (!this.#read.has(field)) {
        this.#problem(`${this.#name}.${field}`, `left out: known are ${[...this.#read].join(', ')}`);
      }
    }
  }
}

function seconds(value: number | undefined): Duration | undefined {
  return value === undefined ? undefined : Duration.seconds(value);
}

function days(value: number | undefined): Duration | undefined {
  return value === undefined ? undefined : Duration.days(value);
}

/** Without what is undefined: left out and undefined are two things to the constructs. */
function there<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  // Only the compiler sees a difference between a key that is missing and one that is optional.
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}
