import { expect, test } from 'vitest';
import { fromPrisma } from '../../shared/store/postgres/adapters/prisma.ts';
import { fromTypeOrm } from '../../shared/store/postgres/adapters/typeorm.ts';

test('Prisma gets each value as an argument of its own, and answers rows alone', async () => {
  const calls: unknown[][] = [];
  const tx = {
    $queryRawUnsafe: async (...args: unknown[]) => {
      calls.push(args);
      return [{ id: '1' }];
    },
  };
  expect(await fromPrisma(tx).query('SELECT $1, $2', ['a', 'b'])).toEqual({ rows: [{ id: '1' }] });
  expect(calls).toEqual([['SELECT $1, $2', 'a', 'b']]);
});

test('TypeORM answers rows alone, or rows and their number', async () => {
  const answers: unknown[] = [[{ id: '1' }], [[{ id: '2' }], 1], [], [[], 0]];
  const runner = { isTransactionActive: true, query: async () => answers.shift() };
  const executor = fromTypeOrm(runner);
  const found = [];
  for (let n = 0; n < 4; n++) found.push((await executor.query('SELECT 1', [])).rows);
  expect(found).toEqual([[{ id: '1' }], [{ id: '2' }], [], []]);
});

test('TypeORM without a transaction is refused', () => {
  const query = async () => [];
  expect(() => fromTypeOrm({ query })).toThrow(/dataSource\.transaction/);
  expect(() => fromTypeOrm({ query, isTransactionActive: false })).toThrow(/dataSource\.transaction/);
  expect(() => fromTypeOrm({ query, queryRunner: { isTransactionActive: true } })).not.toThrow();
});
