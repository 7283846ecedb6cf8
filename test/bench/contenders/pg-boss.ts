import pg from 'pg';
import { PgBoss } from 'pg-boss';
import { BATCH, type Contender, PAYLOAD } from './contender.ts';

export interface PgBossOptions {
  /** Loops of fetch and settle at once. */
  readonly fetchers: number;
  /** Completed jobs stay until retention removes them; deleted ones are gone at once, with `deleteJob`. */
  readonly settle: 'complete' | 'delete';
  /** Whether completion checks that the attempt is still the one fetched, as Relaybox's token does. */
  readonly fenced: boolean;
}

const QUEUE = 'drain';

/** pg-boss, set up for throughput as its documentation describes. */
export async function pgBoss(url: string, options: PgBossOptions): Promise<Contender> {
  const boss = new PgBoss({
    connectionString: url,
    max: options.fetchers + 1,
    // Nothing beside the drain: no maintenance, schedules, registry or traces.
    supervise: false,
    schedule: false,
    registerInstance: false,
    openTelemetry: { enabled: false },
  });
  boss.on('error', (error) => {
    throw error;
  });
  await boss.start();
  const admin = new pg.Pool({ connectionString: url, max: 1 });
  const how = options.settle === 'delete' ? 'deleted' : `completed${options.fenced ? ', fenced' : ''}`;

  const settle = async (jobs: { id: string; retryCount: number }[]): Promise<void> => {
    const ids = jobs.map(({ id }) => id);
    if (options.settle === 'delete') await boss.deleteJob(QUEUE, ids);
    else await boss.complete(QUEUE, options.fenced ? jobs : ids);
  };

  return {
    name: `pg-boss 12, ${options.fetchers} fetchers, rows ${how}`,
    async fill(messages) {
      await boss.deleteQueue(QUEUE).catch(() => undefined);
      // A table of its own: what the documentation advises for a large queue.
      await boss.createQueue(QUEUE, { partition: true });
      const data = JSON.parse(PAYLOAD) as object;
      for (let left = messages; left > 0; left -= 5000) {
        await boss.insert(
          QUEUE,
          Array.from({ length: Math.min(left, 5000) }, () => ({ data })),
        );
      }
      await admin.query('VACUUM (ANALYZE)');
      await admin.query('CHECKPOINT');
    },
    async drain() {
      let drained = 0;
      const fetcher = async (): Promise<void> => {
        for (;;) {
          const jobs = await boss.fetch(QUEUE, { batchSize: BATCH });
          if (jobs.length === 0) return;
          await settle(jobs);
          drained += jobs.length;
        }
      };
      await Promise.all(Array.from({ length: options.fetchers }, fetcher));
      return drained;
    },
    async close() {
      await boss.stop({ graceful: false });
      await admin.end();
    },
  };
}
