import { randomUUID } from 'node:crypto';
import type { AddResult, OutboxRow } from '../../message/message.ts';
import { storable } from '../../message/text.ts';
import { Exclusive } from '../outbox/exclusive.ts';
import { Quotas } from '../outbox/quotas.ts';
import type {
  DueLane,
  LaneLease,
  OutboxStore,
  Probe,
  ReadRequest,
  ReadResult,
  Settlement,
  SettleOptions,
  SettleResult,
} from '../outbox-store.ts';
import type { Database } from './database.ts';
import { type Names, type SqlServerTables, sqlServerNames } from './names.ts';
import { OutboxReader } from './outbox/read.ts';
import { OutboxSettler } from './outbox/settle.ts';
import { insertRows } from './producer.ts';
import { addAloneSql } from './sql/add.ts';
import {
  openLaneSql,
  probeAbandonedSql,
  probeFailedSql,
  probePassedSql,
  takeProbeSql,
} from './sql/outbox-breaker.ts';
import { dueLanesSql, secondsToNextDueSql } from './sql/outbox-due.ts';
import { bucketsOfSql, leaseRowsSql, leaseSql, releaseSql } from './sql/outbox-lease.ts';

/** Ids of tried messages that a lane remembers; the newest stay. */
const REMEMBERED = 32;

/** The outbox store on SQL Server. Make one per process: reads and settles of one lease know of each other through it. */
export function sqlServerOutboxStore(database: Database, tables: SqlServerTables | Names = {}): OutboxStore {
  return new SqlServerOutboxStore(database, 'placeholders' in tables ? tables : sqlServerNames(tables));
}

class SqlServerOutboxStore implements OutboxStore {
  readonly #database: Database;
  readonly #names: Names;
  readonly #quotas = new Quotas();
  readonly #reader: OutboxReader;
  readonly #settler: OutboxSettler;

  constructor(database: Database, names: Names) {
    this.#database = database;
    this.#names = names;
    const exclusive = new Exclusive();
    this.#reader = new OutboxReader(database, names, { exclusive, quotas: this.#quotas });
    this.#settler = new OutboxSettler(database, names, { exclusive });
  }

  async add(rows: readonly OutboxRow[]): Promise<readonly AddResult[]> {
    if (rows.length === 0) return [];
    const executor = { query: (text: string, values: unknown[]) => this.#database.query(text, values) };
    const added = new Set(await insertRows(executor, addAloneSql(this.#names), rows));
    return rows.map(({ id }) => ({ id, added: added.delete(id) }));
  }

  async dueLanes(): Promise<readonly DueLane[]> {
    const { rows } = await this.#database.query(dueLanesSql(this.#names));
    return rows.map((row) => ({
      destination: row['destination'] as string,
      state: row['state'] as DueLane['state'],
    }));
  }

  async lease(request: Parameters<OutboxStore['lease']>[0]): Promise<LaneLease | undefined> {
    const token = randomUUID();
    const buckets = await this.#lease(request, token);
    if (buckets.length >= (request.buckets?.length ?? 1))
      return { destination: request.destination, token, buckets };
    // Perhaps the lane is new, and has no lease rows yet.
    const { rows } = await this.#database.query(leaseRowsSql(this.#names), [request.destination]);
    const more = Number(rows[0]?.['made'] ?? 0) > 0 ? await this.#lease(request, token) : [];
    const all = [...buckets, ...more];
    return all.length > 0 ? { destination: request.destination, token, buckets: all } : undefined;
  }

  async #lease(request: Parameters<OutboxStore['lease']>[0], token: string): Promise<number[]> {
    const { destination, limit, leaseMs, buckets } = request;
    const { rows } = await this.#database.query(leaseSql(this.#names, { named: buckets !== undefined }), [
      destination,
      limit,
      token,
      leaseMs,
      ...(buckets ? [JSON.stringify(buckets)] : []),
    ]);
    return rows.map((row) => row['bucket'] as number);
  }

  read(lease: LaneLease, request: ReadRequest): Promise<ReadResult> {
    return this.#reader.read(lease, request);
  }

  settle(lease: LaneLease, settlement: Settlement, options: SettleOptions): Promise<SettleResult> {
    return this.#settler.settle(lease, settlement, options);
  }

  async release(lease: LaneLease): Promise<void> {
    this.#quotas.forget(lease);
    await this.#database.query(releaseSql(this.#names), [
      lease.destination,
      JSON.stringify(lease.buckets),
      lease.token,
    ]);
  }

  async openLane(request: Parameters<OutboxStore['openLane']>[0]): Promise<boolean> {
    const { destination, reason, pauseSeconds, tried } = request;
    const { rows } = await this.#database.query(openLaneSql(this.#names), [
      destination,
      storable(reason),
      milliseconds(pauseSeconds),
      JSON.stringify(newest(tried)),
    ]);
    return Number(rows[0]?.['opened'] ?? 0) > 0;
  }

  async takeProbe(request: Parameters<OutboxStore['takeProbe']>[0]): Promise<Probe | undefined> {
    const { destination, leaseMs } = request;
    const token = randomUUID();
    const { rows } = await this.#database.query(takeProbeSql(this.#names), [destination, leaseMs, token]);
    const row = rows[0];
    if (!row) return undefined;
    return {
      destination,
      token,
      failures: row['failures'] as number,
      tried: JSON.parse(row['tried'] as string) as string[],
    };
  }

  async probePassed(probe: Probe): Promise<boolean> {
    const { rows } = await this.#database.query(probePassedSql(this.#names), [
      probe.destination,
      probe.token,
    ]);
    return rows.length > 0;
  }

  async probeFailed(probe: Probe, request: Parameters<OutboxStore['probeFailed']>[1]): Promise<boolean> {
    const { reason, pauseSeconds, tried } = request;
    const { rows } = await this.#database.query(probeFailedSql(this.#names), [
      probe.destination,
      probe.token,
      storable(reason),
      milliseconds(pauseSeconds),
      // Only the probe's holder changes the list while the lane is open, and the token is looked at in the statement.
      JSON.stringify(newest([...probe.tried, ...tried])),
    ]);
    return rows.length > 0;
  }

  async probeAbandoned(probe: Probe): Promise<void> {
    await this.#database.query(probeAbandonedSql(this.#names), [probe.destination, probe.token]);
  }

  async bucketsOf(ids: readonly string[]): ReturnType<OutboxStore['bucketsOf']> {
    const { rows } = await this.#database.query(bucketsOfSql(this.#names), [JSON.stringify(ids)]);
    return rows.map((row) => ({
      id: row['id'] as string,
      destination: row['destination'] as string,
      bucket: row['bucket'] as number,
    }));
  }

  async secondsToNextDue(): Promise<number | undefined> {
    const { rows } = await this.#database.query(secondsToNextDueSql(this.#names));
    const seconds = rows[0]?.['seconds'];
    return seconds === null || seconds === undefined ? undefined : Number(seconds);
  }
}

function milliseconds(seconds: number): number {
  return Math.ceil(seconds * 1000);
}

/** The newest of the distinct ids, in their order. */
function newest(ids: readonly string[]): string[] {
  return [...new Set([...ids].reverse())].slice(0, REMEMBERED).reverse();
}
