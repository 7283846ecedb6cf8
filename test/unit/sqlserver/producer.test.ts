import { describe, expect, it } from 'vitest';
import { ConfigurationError, MessageRefused } from '../../../shared/message/errors.ts';
import { fromKnex } from '../../../shared/store/sqlserver/adapters/knex.ts';
import { fromKysely } from '../../../shared/store/sqlserver/adapters/kysely.ts';
import { fromPrisma } from '../../../shared/store/sqlserver/adapters/prisma.ts';
import { fromTypeOrm } from '../../../shared/store/sqlserver/adapters/typeorm.ts';
import { sqlServerOutbox } from '../../../shared/store/sqlserver/producer.ts';
import { NO_TRANSACTION } from '../../../shared/store/sqlserver/sql/add.ts';

const message = { destination: 'orders', messageType: 'order.placed', payload: { orderId: '1' } };
const text = "SELECT @p1, @p2, @p1, [a@p1?], N'@p2?' -- @p1?";

describe('the outbox on SQL Server', () => {
  it('takes an mssql Transaction, and answers what was added', async () => {
    const { transaction, inputs } = fakeTransaction((rows) => [rows[0]?.id.toUpperCase()]);
    const outbox = sqlServerOutbox();
    const results = await outbox.add(transaction, [message, { ...message, partitionKey: 'k' }]);
    expect(results.map(({ added }) => added)).toEqual([true, false]);
    expect(inputs.map(({ name }) => name)).toEqual(['p1']);
    const rows = JSON.parse(String(inputs[0]?.value));
    expect(rows.map(({ place }: { place: number }) => place)).toEqual([0, 1]);
    expect(rows[1]).toMatchObject({ partition_key: 'k', destination: 'orders', delay_ms: null });
  });

  it('sends an id once that is given twice in one call, and the first is the one that is added', async () => {
    const id = '019a0000-0000-7000-8000-00000000000a';
    const { transaction, inputs } = fakeTransaction((rows) => rows.map((row) => row.id));
    const results = await sqlServerOutbox().add(transaction, [
      { ...message, id },
      { ...message, id },
    ]);
    expect(results).toEqual([
      { id, added: true },
      { id, added: false },
    ]);
    expect(JSON.parse(String(inputs[0]?.value))).toHaveLength(1);
  });

  it('refuses a pool, whose requests share no transaction, and what is no transaction at all', async () => {
    const outbox = sqlServerOutbox();
    const pool = { request: () => fakeRequest([], () => []), connecting: false };
    await expect(outbox.add(pool, message)).rejects.toThrow(/ConnectionPool/);
    await expect(outbox.add({} as never, message)).rejects.toThrow(ConfigurationError);
  });

  it('says that there is no transaction where the server says so', async () => {
    const executor = {
      query: () => Promise.reject(Object.assign(new Error('x'), { number: NO_TRANSACTION })),
    };
    await expect(sqlServerOutbox().add(executor, message)).rejects.toThrow(/without a transaction/);
  });

  it('refuses what has more code units than its column, though not more characters', async () => {
    const { transaction } = fakeTransaction(() => []);
    const partitionKey = '\u{1F600}'.repeat(150);
    await expect(sqlServerOutbox().add(transaction, { ...message, partitionKey })).rejects.toThrow(
      MessageRefused,
    );
  });
});

describe('adapters to SQL Server', () => {
  it('Kysely gets its own placeholders, outside of quoted text', async () => {
    const asked: { sql: string; parameters: readonly unknown[] }[] = [];
    const trx = {
      isTransaction: true,
      executeQuery: async (query: { sql: string; parameters: readonly unknown[] }) => {
        asked.push(query);
        return { rows: [{ id: '1' }] };
      },
    };
    expect(await fromKysely(trx).query(text, ['a', 'b'])).toEqual({ rows: [{ id: '1' }] });
    expect(asked[0]).toMatchObject({
      sql: "SELECT @1, @2, @1, [a@p1?], N'@p2?' -- @p1?",
      parameters: ['a', 'b'],
    });
    expect(() => fromKysely({ ...trx, isTransaction: false })).toThrow(ConfigurationError);
  });

  it('Knex gets question marks and a value for each', async () => {
    const asked: unknown[][] = [];
    const trx = { isTransaction: true, raw: async (...args: unknown[]) => asked.push(args) && [{ id: '1' }] };
    expect(await fromKnex(trx).query(text, ['a', 'b'])).toEqual({ rows: [{ id: '1' }] });
    expect(asked).toEqual([["SELECT ?, ?, ?, [a@p1\\?], N'@p2\\?' -- @p1\\?", ['a', 'b', 'a']]]);
    expect(() => fromKnex({ raw: trx.raw })).toThrow(ConfigurationError);
  });

  it('Prisma and TypeORM get theirs', async () => {
    const asked: unknown[][] = [];
    const tx = { $queryRawUnsafe: async (...args: unknown[]) => asked.push(args) && [] };
    await fromPrisma(tx).query('SELECT @p1, @p2', ['a', 'b']);
    const runner = {
      isTransactionActive: true,
      query: async (...args: unknown[]) => asked.push(args) && [{ id: '1' }],
    };
    expect(await fromTypeOrm(runner).query('SELECT @p1, @p2', ['a', 'b'])).toEqual({ rows: [{ id: '1' }] });
    expect(asked).toEqual([
      ['SELECT @P1, @P2', 'a', 'b'],
      ['SELECT @0, @1', ['a', 'b']],
    ]);
    expect(() => fromTypeOrm({ query: runner.query })).toThrow(ConfigurationError);
  });
});

interface Input {
  readonly name: string;
  readonly value: unknown;
}

function fakeRequest(inputs: Input[], added: (rows: { id: string }[]) => (string | undefined)[]) {
  return {
    input: (name: string, value: unknown) => inputs.push({ name, value }),
    query: async () => ({
      recordsets: [added(JSON.parse(String(inputs.at(-1)?.value))).map((id) => ({ id }))],
    }),
  };
}

function fakeTransaction(added: (rows: { id: string }[]) => (string | undefined)[]) {
  const inputs: Input[] = [];
  const transaction = {
    request: () => fakeRequest(inputs, added),
    commit: async () => undefined,
    rollback: async () => undefined,
  };
  return { transaction, inputs };
}
