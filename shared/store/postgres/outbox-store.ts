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
import { type Names, type PostgresTables, postgresNames } from './names.ts';
import { OutboxReader } from './outbox/read.ts';
import { OutboxSettler } from './outbox/settle.ts';
import { insertRows } from './producer.ts';
import { addSql } from './sql/add.ts';
import {
  openLaneSql,
  probeAbandonedSql,
  probeFailedSql,
  probePassedSql,
  takeProbeSql,
} from './sql/outbox-breaker.ts';
import { dueLanesSql, secondsToNextDueSql } from './sql/outbox-due.ts';
import { bucketsOfSql, leaseRowsSql, leaseSql, releaseSql } from './sql/outbox-lease.ts';

/** The outbox store on PostgreSQL. Make one per process: reads and settles of one lease know of each other through it. */
export function postgresOutboxStore(database: Database, tables: PostgresTables | Names = {}): OutboxStore {
  return new PostgresOutboxStore(database, 'placeholders' in tables ? tables : postgresNames(tables));
}

class PostgresOutboxStore implements OutboxStore {
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
    // A single statement is a transaction of its own, whatever connection it runs on.
    const executor = { query: (text: string, values: unknown[]) => this.#database.query(text, values) };
    const added = new Set(await insertRows(executor, addSql(this.#names), rows));
    return rows.map(({ id }) => ({ id, added: added.delete(id.toLowerCase()) }));
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
    const { rowCount } = await this.#database.query(leaseRowsSql(this.#names), [request.destination]);
    const more = rowCount ? await this.#lease(request, token) : [];
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
      ...(buckets ? [buckets] : []),
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
    await this.#database.query(releaseSql(this.#names), [lease.destination, lease.buckets, lease.token]);
  }

  async openLane(request: Parameters<OutboxStore['openLane']>[0]): Promise<boolean> {
    const { destination, reason, pauseSeconds, tried } = request;
    const { rows } = await this.#database.query(openLaneSql(this.#names), [
      destination,
      storable(reason),
      pauseSeconds,
      tried,
    ]);
    return rows.length > 0;
  }

  async takeProbe(request: Parameters<OutboxStore['takeProbe']>[0]): Promise<Probe | undefined> {
    const { destination, leaseMs } = request;
    const { rows } = await this.#database.query(takeProbeSql(this.#names), [destination, leaseMs]);
    const row = rows[0];
    if (!row) return undefined;
    return {
      destination,
      token: row['token'] as string,
      failures: row['failures'] as number,
      tried: row['tried'] as string[],
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
    const values = [probe.destination, probe.token, storable(reason), pauseSeconds, tried];
    const { rows } = await this.#database.query(probeFailedSql(this.#names), values);
    return rows.length > 0;
  }

  async probeAbandoned(probe: Probe): Promise<void> {
    await this.#database.query(probeAbandonedSql(this.#names), [probe.destination, probe.token]);
  }

  async bucketsOf(ids: readonly string[]): ReturnType<OutboxStore['bucketsOf']> {
    const { rows } = await this.#database.query(bucketsOfSql(this.#names), [ids]);
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
