import { randomUUID } from 'node:crypto';
import { storable } from '../../../message/text.ts';
import type { Breaker } from '../../outbox/store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import {
  openLaneSql,
  probeAbandonedSql,
  probeFailedSql,
  probePassedSql,
  takeProbeSql,
} from '../sql/outbox-breaker.ts';

/** Ids of tried messages that a lane remembers; the newest stay. */
const REMEMBERED = 32;

/** The breaker on SQL Server. */
export function breakerOf(database: Database, names: Names): Breaker {
  return {
    async openLane({ destination, reason, pauseSeconds, tried }) {
      const values = [destination, storable(reason), milliseconds(pauseSeconds), newest(tried)];
      const { rows } = await database.query(openLaneSql(names), values);
      return Number(rows[0]?.['opened'] ?? 0) > 0;
    },

    async takeProbe({ destination, leaseMs }) {
      const token = randomUUID();
      const [row] = (await database.query(takeProbeSql(names), [destination, leaseMs, token])).rows;
      if (row === undefined) return undefined;
      const tried = JSON.parse(row['tried'] as string) as string[];
      return { destination, token, failures: row['failures'] as number, tried };
    },

    async probePassed({ destination, token }) {
      return (await database.query(probePassedSql(names), [destination, token])).rows.length > 0;
    },

    async probeFailed(probe, { reason, pauseSeconds, tried }) {
      // Only the probe's holder changes the list while the lane is open, and the token is looked at in the statement.
      const all = newest([...probe.tried, ...tried]);
      const values = [probe.destination, probe.token, storable(reason), milliseconds(pauseSeconds), all];
      return (await database.query(probeFailedSql(names), values)).rows.length > 0;
    },

    async probeAbandoned({ destination, token }) {
      await database.query(probeAbandonedSql(names), [destination, token]);
    },
  };
}

function milliseconds(seconds: number): number {
  return Math.ceil(seconds * 1000);
}

/** The newest of the distinct ids, in their order, as the statements take them. */
function newest(ids: readonly string[]): string {
  return JSON.stringify([...new Set([...ids].reverse())].slice(0, REMEMBERED).reverse());
}
