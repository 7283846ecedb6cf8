import { randomUUID } from 'node:crypto';
import type { FunctionHost } from '../host.ts';
import { localAws } from '../sqs.ts';

export interface ScheduleOptions {
  readonly host: FunctionHost;
  readonly functionName: string;
  readonly everyMs: number;
}

/** Invokes a function again and again. A tick whose predecessor still runs is left out: late sweeps help nobody. */
export class Schedule {
  readonly #timer: NodeJS.Timeout;
  #running: Promise<unknown> | undefined;

  constructor({ host, functionName, everyMs }: ScheduleOptions) {
    this.#timer = setInterval(() => {
      this.#running ??= host
        .invoke(functionName, tick())
        .catch(() => undefined)
        .finally(() => {
          this.#running = undefined;
        });
    }, everyMs);
  }

  /** Stops the clock and waits for what is running. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }
}

/** A scheduled event, as EventBridge Scheduler and scheduled rules send it. */
function tick(): Record<string, unknown> {
  return {
    version: '0',
    id: randomUUID(),
    'detail-type': 'Scheduled Event',
    source: 'aws.scheduler',
    account: localAws.account,
    time: new Date().toISOString(),
    region: localAws.region,
    resources: [],
    detail: {},
  };
}
