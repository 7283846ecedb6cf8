import { mayHaveFollowers } from '../../outbox/message.ts';
import type { OutboxSettles, Settled } from '../../outbox/settler.ts';
import type { ClaimedOutboxMessage } from '../../outbox-store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { failedSql, publishedSql } from '../sql/outbox-settle.ts';

/** Settles of the outbox on PostgreSQL: one statement each. */
export function outboxSettles(database: Database, names: Names): OutboxSettles {
  const settled = async (text: string, values: unknown[]): Promise<Settled> => {
    const [row] = (await database.query(text, values)).rows;
    const list = <T>(column: string): T[] => (row?.[column] ?? []) as T[];
    return {
      settled: list('settled'),
      ended: list('ended'),
      buckets: list('buckets'),
      freed: list('freed'),
    };
  };
  return {
    async published({ destination, buckets, token }, messages, { afterSuccess, leaseMs }) {
      const release = followed(messages);
      return await settled(publishedSql(names, { afterSuccess, release: release.length > 0 }), [
        ...[destination, buckets, token, leaseMs],
        messages.map(({ id }) => id),
        ...(release.length > 0 ? [release] : []),
      ]);
    },

    async failed({ destination, buckets, token }, failures, { leaseMs, onFailedKey }) {
      const block = onFailedKey === 'block';
      const release = block ? [] : followed(failures.map(({ message }) => message));
      return await settled(failedSql(names, { block, release: release.length > 0 }), [
        ...[destination, buckets, token, leaseMs],
        failures.map(({ message }) => message.id),
        failures.map(({ reason }) => reason),
        failures.map(({ retryInSeconds }) => retryInSeconds),
        ...(release.length > 0 ? [release] : []),
      ]);
    },
  };
}

function followed(messages: readonly ClaimedOutboxMessage[]): string[] {
  return messages.filter(mayHaveFollowers).map(({ id }) => id);
}
