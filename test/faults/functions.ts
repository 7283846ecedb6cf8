import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { FunctionHost, type FunctionSpec } from '../../local/host.ts';
import type { LocalQueue } from '../../local/sqs.ts';
import { QueueTrigger, type QueueTriggerOptions } from '../../local/triggers/queue.ts';
import type { RelayWorld } from '../support/engine/relay-world.ts';
import type { Fate } from './children/points.ts';

/** Functions in processes of their own over a world's database and queues. They die, and stop, where their messages say. */
export interface Functions {
  readonly host: FunctionHost;
  /** Adds a function of `children/`. @default its name is that of the file, as `entry` is, without the ending */
  add(name: string, more?: Partial<Omit<FunctionSpec, 'name'>>): Promise<void>;
  /** Feeds a function from a queue, as Lambda does. */
  poll(name: string, queue: LocalQueue, more?: Partial<QueueTriggerOptions>): void;
  /** Invokes a function over and over, so many at a time, whatever becomes of each. */
  sweep(name: string, atOnce?: number): void;
  /** Points that were met, in the form of `written-7`, each with the id of the process that met it. */
  met(): ReadonlyMap<string, number>;
  /** Ends every process, stopped ones too. */
  stop(): Promise<void>;
}

/** Makes them. Nothing runs yet. */
export function functionsOf({ db, gate }: Pick<RelayWorld, 'db' | 'gate'>): Functions {
  const host = new FunctionHost();
  const points = mkdtempSync(join(tmpdir(), 'relaybox-points-'));
  const ending = new AbortController();
  const sweeps: Promise<void>[] = [];
  const triggers: QueueTrigger[] = [];
  const met = () =>
    new Map(readdirSync(points).map((name) => [name, Number(readFileSync(join(points, name), 'utf8'))]));
  return {
    host,
    met,
    async add(name, more = {}) {
      const env = {
        RELAYBOX_DATABASE_URL: db.url,
        RELAYBOX_SOURCE: 'test',
        RELAYBOX_INBOX_SOURCE: 'test',
        AWS_ENDPOINT_URL_SQS: gate.url,
        POINTS: points,
        ...more.env,
      };
      const entry = fileURLToPath(new URL(`children/${more.entry ?? name}.ts`, import.meta.url));
      await host.add({ name, timeoutMs: 10_000, ...more, entry, env });
    },
    poll(functionName, queue, more = {}) {
      triggers.push(new QueueTrigger({ host, functionName, queue, endpoint: gate.url, ...more }));
    },
    sweep(name, atOnce = 1) {
      const loop = async (): Promise<void> => {
        while (!ending.signal.aborted) {
          await host.invoke(name, {}).catch(() => undefined);
          await sleep(50);
        }
      };
      sweeps.push(...Array.from({ length: atOnce }, loop));
    },
    async stop() {
      ending.abort();
      // A stopped process hears nothing until it goes on; one that is gone by now needs nothing.
      for (const pid of met().values()) resume(pid);
      await host.stop();
      await Promise.all([...sweeps, ...triggers.map((trigger) => trigger.stop())]);
      rmSync(points, { recursive: true, force: true });
    },
  };
}

/**
 * Every message met the point that it names. Behind a COMMIT it may be spared: a neighbour's death, or its session's end,
 * is quicker, and it is not handled again.
 */
export function expectPointsMet(functions: Functions, fates: readonly Fate[]): void {
  const named = fates.flatMap(({ n, at }) => (at ? [`${at}-${n}`] : []));
  const met = [...functions.met().keys()];
  expect(named).toEqual(expect.arrayContaining(met));
  expect(met).toEqual(
    expect.arrayContaining(named.filter((point) => !/^(committed|unanswered)/.test(point))),
  );
}

/** Lets a stopped process go on. */
export function resume(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(pid, 'SIGCONT');
  } catch {
    // It is gone.
  }
}
