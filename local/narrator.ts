import type { AcceptedEvent } from './eventbridge.ts';
import type { InvocationReport } from './host.ts';

/** Tells what flows, one line per step, for a person at a terminal. */
export class Narrator {
  readonly #write: (line: string) => void;
  readonly #verbose: boolean;

  constructor(write: (line: string) => void, { verbose }: { readonly verbose: boolean }) {
    this.#write = write;
    this.#verbose = verbose;
  }

  invocation({ functionName, event, result, error, ms }: InvocationReport): void {
    const took = `${Math.round(ms)} ms`;
    const trigger = triggerOf(event);
    if (error) {
      this.#line(functionName, `${trigger} → FAILED after ${took}: ${firstLine(error.message)}`);
      return;
    }
    // A sweep that found nothing says nothing: it comes again and again.
    if (trigger === 'sweep' && !this.#verbose) return;
    this.#line(functionName, `${trigger} → ${outcomeOf(result)} (${took})`);
  }

  event({ bus, detailType, detail, rules, lost }: AcceptedEvent): void {
    const id = /"id":"([^"]+)"/.exec(detail)?.[1] ?? '';
    const where = lost
      ? 'LOST: there is no such bus'
      : rules.length > 0
        ? rules.join(', ')
        : 'no rule wants it';
    this.#line(`bus ${bus}`, `${detailType} ${id} → ${where}`);
  }

  /** A line that a function wrote: its figures and its warnings are shown in short. */
  log(functionName: string, line: string): void {
    if (this.#verbose) {
      this.#line(functionName, `│ ${line}`);
      return;
    }
    const said = inShort(line);
    if (said !== undefined) this.#line(functionName, said);
  }

  #line(who: string, what: string): void {
    this.#write(`${new Date().toISOString().slice(11, 23)}  ${who.padEnd(24)} ${what}`);
  }
}

function triggerOf(event: unknown): string {
  const { Records, requestContext } = (event ?? {}) as {
    Records?: { eventSourceARN: string }[];
    requestContext?: { http?: { method: string; path: string } };
  };
  if (requestContext?.http) return `${requestContext.http.method} ${requestContext.http.path}`;
  const first = Records?.[0];
  if (!Records || !first) return 'sweep';
  const queue = first.eventSourceARN.split(':').pop() ?? '';
  if (queue.endsWith('-wake')) return 'woken';
  return `${Records.length} ${Records.length === 1 ? 'message' : 'messages'} from queue ${queue}`;
}

function outcomeOf(result: unknown): string {
  const { statusCode, body, batchItemFailures } = (result ?? {}) as {
    statusCode?: number;
    body?: string;
    batchItemFailures?: unknown[];
  };
  if (statusCode !== undefined) return `${statusCode} ${body ?? ''}`;
  if (batchItemFailures && batchItemFailures.length > 0) return `${batchItemFailures.length} not taken`;
  return 'done';
}

/** What tells a person nothing new: each claimed message is published or handled, and the time is shown already. */
const unsaid: ReadonlySet<string> = new Set(['Claimed', 'HandlerMs', 'Added', 'OldestDueAgeSeconds']);

/** A metrics blob as its figures that are not zero, a warning as its text; undefined for everything else. */
function inShort(line: string): string | undefined {
  const blob = parse(line);
  if (typeof blob['level'] === 'string' && ['WARN', 'ERROR'].includes(blob['level'])) {
    return `${blob['level']} ${String(blob['message'])}`;
  }
  const { CloudWatchMetrics } = (blob['_aws'] ?? {}) as {
    CloudWatchMetrics?: { Metrics: { Name: string }[] }[];
  };
  const figures = (CloudWatchMetrics ?? [])
    .flatMap(({ Metrics }) => Metrics.map(({ Name }) => Name))
    .filter((name) => !unsaid.has(name) && Number(blob[name]) > 0)
    .map((name) => `${name} ${blob[name]}`);
  return figures.length > 0 ? `${String(blob['lane'] ?? '')}: ${figures.join(', ')}` : undefined;
}

function parse(line: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(line);
    return value !== null && typeof value === 'object' ? { ...value } : {};
  } catch {
    return {};
  }
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
