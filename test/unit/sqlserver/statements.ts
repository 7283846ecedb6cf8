import type { ClaimedOutboxMessage } from '../../../shared/store/outbox-store.ts';
import { asClaimed } from '../../../shared/store/outbox-store.ts';
import type { Database } from '../../../shared/store/sqlserver/database.ts';
import { sqlServerNames } from '../../../shared/store/sqlserver/names.ts';
import { sqlServerOutboxStore } from '../../../shared/store/sqlserver/outbox-store.ts';
import { insertRows } from '../../../shared/store/sqlserver/producer.ts';
import { addSql } from '../../../shared/store/sqlserver/sql/add.ts';
import { outboxRow } from '../../../shared/testing/outbox/harness.ts';

/** A statement as it was sent. */
export interface Sent {
  readonly by: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

/** Names that must be quoted, and that would end a literal. */
export const names = sqlServerNames({ schema: 'my "app"', outboxTable: "o'brien", inboxTable: 'In box' });

/** In each value that is sent, so that a value in a text is found. */
export const MARK = 'marked-value';

/** A database that answers nothing and remembers what it was asked. */
export function recording(by: string, sent: Sent[], rows: Record<string, unknown>[] = []): Database {
  return {
    async query(text, values = []) {
      sent.push({ by, text, values });
      return { rows, sets: [rows] };
    },
  };
}

/** Every statement of the outbox, as the store and the producer send them. */
export async function outboxStatements(): Promise<readonly Sent[]> {
  const sent: Sent[] = [];
  const run = async (
    by: string,
    work: (store: ReturnType<typeof sqlServerOutboxStore>) => Promise<unknown>,
    rows: Record<string, unknown>[] = [],
  ): Promise<void> => {
    await work(sqlServerOutboxStore(recording(by, sent, rows), names));
  };
  const lease = { destination: `lane ${MARK}`, token: `token ${MARK}`, buckets: [3, 7] };
  const options = { leaseMs: 30_000, afterSuccess: 'keep', onFailedKey: 'block' } as const;
  const message = claimed();
  const row = outboxRow({ partitionKey: MARK, payload: `"${MARK}"` });
  const probe = { destination: MARK, token: MARK, failures: 1, tried: [MARK] };

  await run('add', (store) => store.add([row]));
  for (const serializeKeys of [false, true]) {
    await insertRows(recording('producer add', sent), addSql(names, { serializeKeys }), [row]);
  }
  await run('due lanes', (store) => store.dueLanes());
  await run('lease', (store) => store.lease({ destination: MARK, limit: 8, leaseMs: 30_000 }));
  await run('lease named', (store) =>
    store.lease({ destination: MARK, limit: 8, leaseMs: 30_000, buckets: [1] }),
  );
  await run('read', (store) => store.read(lease, { limit: 50, maxBytes: 1000, except: [MARK] }));
  await run('read only', (store) => store.read(lease, { limit: 50, maxBytes: 1000, only: [MARK] }));
  await run('hold', (store) => store.read(lease, { limit: 50, maxBytes: 1000 }), [blockedRow()]);
  for (const afterSuccess of ['keep', 'delete', 'archive'] as const) {
    const settlement = { published: [message], failed: [], rejected: [] };
    await run(`settle ${afterSuccess}`, (store) =>
      store.settle(lease, settlement, { ...options, afterSuccess }),
    );
  }
  for (const onFailedKey of ['block', 'skip'] as const) {
    const settlement = {
      published: [],
      failed: [{ message, reason: MARK, retryInSeconds: 1.5 }],
      rejected: [{ message: claimed(), reason: MARK }],
    };
    await run(`settle failed ${onFailedKey}`, (store) =>
      store.settle(lease, settlement, { ...options, onFailedKey }),
    );
  }
  await run('release', (store) => store.release(lease));
  await run('open lane', (store) =>
    store.openLane({ destination: MARK, reason: MARK, pauseSeconds: 5, tried: [MARK] }),
  );
  await run('take probe', (store) => store.takeProbe({ destination: MARK, leaseMs: 1000 }));
  await run('probe passed', (store) => store.probePassed(probe));
  await run('probe failed', (store) =>
    store.probeFailed(probe, { reason: MARK, pauseSeconds: 5, tried: [MARK] }),
  );
  await run('probe abandoned', (store) => store.probeAbandoned(probe));
  await run('buckets of', (store) => store.bucketsOf([MARK]));
  await run('seconds to next due', (store) => store.secondsToNextDue());
  return sent;
}

function claimed(): ClaimedOutboxMessage {
  return asClaimed({
    id: MARK,
    destination: MARK,
    bucket: 3,
    sequence: '1',
    messageType: MARK,
    payload: MARK,
    payloadBytes: MARK.length,
    headers: {},
    correlationId: null,
    partitionKey: MARK,
    retryCount: 0,
    maxRetries: 5,
    replay: 0,
  });
}

/** As the read answers a row behind a blocked one. */
function blockedRow(): Record<string, unknown> {
  return {
    id: MARK,
    message_type: MARK,
    headers: null,
    correlation_id: null,
    partition_key: MARK,
    sequence: '1',
    retry_count: 0,
    max_retries: 5,
    bucket: 3,
    blocked: 1,
    overtakes: 0,
    payload: MARK,
    count: 0,
  };
}

/** A statement without its texts in quotes, comments and bracketed names, which are put as `[]` and `''`. */
export function bare(text: string): string {
  return text.replace(/--[^\n]*|N?'(?:[^']|'')*'|\[(?:[^\]]|\]\])*\]/g, (piece) => {
    if (piece.startsWith('--')) return '';
    return piece.startsWith('[') ? '[]' : "''";
  });
}
