import { mayHaveFollowers } from '../../outbox/message.ts';
import type { OutboxSettles, Settled } from '../../outbox/settler.ts';
import type { ClaimedOutboxMessage, LaneLease } from '../../outbox-store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { failedSql, publishedSql } from '../sql/outbox-settle.ts';

/** Settles of the outbox on SQL Server: one batch each. */
export function outboxSettles(database: Database, names: Names): OutboxSettles {
  const settled = async (
    text: string,
    { destination, buckets, token }: LaneLease,
    leaseMs: number,
    outcomes: readonly unknown[],
  ): Promise<Settled> => {
    const values = [destination, JSON.stringify(buckets), token, leaseMs, JSON.stringify(outcomes)];
    const { rows } = await database.query(text, values);
    const list = (kind: string): string[] =>
      rows.filter((row) => row['kind'] === kind).map((row) => String(row['value']));
    return {
      settled: list('settled'),
      ended: list('ended'),
      buckets: list('bucket').map(Number),
      freed: list('freed').map(Number),
    };
  };
  return {
    published: (lease, messages, { afterSuccess, leaseMs }) =>
      settled(publishedSql(names, { afterSuccess }), lease, leaseMs, messages.map(given)),

    failed(lease, failures, { leaseMs, onFailedKey }) {
      const outcomes = failures.map(({ message, reason, retryInSeconds }) => ({
        ...given(message),
        r: reason,
        ms: retryInSeconds === null ? null : Math.ceil(retryInSeconds * 1000),
      }));
      return settled(failedSql(names, { block: onFailedKey === 'block' }), lease, leaseMs, outcomes);
    },
  };
}

/** `f`: its end may let followers of its key go. */
function given(message: ClaimedOutboxMessage): { readonly id: string; readonly f: 0 | 1 } {
  return { id: message.id, f: mayHaveFollowers(message) ? 1 : 0 };
}
