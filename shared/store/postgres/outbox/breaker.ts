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

/** The breaker on PostgreSQL. */
export function breakerOf(database: Database, names: Names): Breaker {
  return {
    async openLane({ destination, reason, pauseSeconds, tried }) {
      const values = [destination, storable(reason), pauseSeconds, tried];
      return (await database.query(openLaneSql(names), values)).rows.length > 0;
    },

    async takeProbe({ destination, leaseMs }) {
      const [row] = (await database.query(takeProbeSql(names), [destination, leaseMs])).rows;
      if (row === undefined) return undefined;
      return {
        destination,
        token: row['token'] as string,
        failures: row['failures'] as number,
        tried: row['tried'] as string[],
      };
    },

    async probePassed({ destination, token }) {
      return (await database.query(probePassedSql(names), [destination, token])).rows.length > 0;
    },

    async probeFailed({ destination, token }, { reason, pauseSeconds, tried }) {
      const values = [destination, token, storable(reason), pauseSeconds, tried];
      return (await database.query(probeFailedSql(names), values)).rows.length > 0;
    },

    async probeAbandoned({ destination, token }) {
      await database.query(probeAbandonedSql(names), [destination, token]);
    },
  };
}
