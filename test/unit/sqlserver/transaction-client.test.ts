import { EventEmitter } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type SqlServerTx, transactionClient } from '../../../shared/lambda/sqlserver/transaction-client.ts';
import { TransactionError } from '../../../shared/message/errors.ts';
import { sqlServerOutbox } from '../../../shared/store/sqlserver/producer.ts';

/** A transaction whose connection can't be had, and which counts how it is used. */
function source(failure = new Error('no server here')) {
  const seen = { begun: 0, running: 0, most: 0, acquired: 0, released: 0 };
  const driver = Object.assign(new EventEmitter(), {
    acquire(_request: unknown, callback: (error: Error) => void) {
      seen.acquired++;
      setTimeout(() => callback(failure), 5);
    },
    release: () => {
      seen.released++;
    },
  });
  const tx = transactionClient({
    client: async () => {
      seen.begun++;
      // The driver's own transaction as far as it is used here.
      return driver as unknown as SqlServerTx;
    },
    async track(statement) {
      seen.running++;
      seen.most = Math.max(seen.most, seen.running);
      try {
        return await statement;
      } finally {
        seen.running--;
      }
    },
  });
  return { tx, seen };
}

describe('`tx` on SQL Server', () => {
  it('begins at the first statement, and not before', async () => {
    const { tx, seen } = source();
    tx.request();
    expect(seen.begun).toBe(0);
    await expect(tx.query('SELECT @p1 AS [one]', [1])).rejects.toThrow('no server here');
    expect(seen.begun).toBe(1);
    await expect(tx.request().query('SELECT 1 AS [one]')).rejects.toThrow('no server here');
    expect(seen.acquired).toBe(2);
  });

  it('counts a statement as running until it has ended, however it ended', async () => {
    const { tx, seen } = source();
    const running = tx.query('SELECT 1 AS [one]', []);
    await Promise.resolve();
    expect(seen.running).toBe(1);
    await running.catch(() => undefined);
    await Promise.resolve();
    expect(seen.running).toBe(0);
  });

  it('lets statements that nobody waited for wait for each other', async () => {
    const { tx, seen } = source();
    const all = await Promise.allSettled([1, 2, 3].map((one) => tx.query('SELECT @p1 AS [one]', [one])));
    expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(String((all[2] as PromiseRejectedResult).reason)).toContain('no server here');
    expect(seen.acquired).toBe(3);
  });

  it.each([
    'COMMIT',
    ' commit transaction',
    'BEGIN TRAN',
    'begin transaction x',
    'ROLLBACK',
    '-- done\nCOMMIT;',
    '/* done */ ROLLBACK TRANSACTION;',
  ])('refuses %j, which would end the transaction or begin one', async (text) => {
    const { tx, seen } = source();
    await expect(tx.query(text, [])).rejects.toThrow(TransactionError);
    expect(() => tx.request().batch(text)).toThrow(TransactionError);
    expect(seen.begun).toBe(0);
  });

  it.each([
    'ROLLBACK TRANSACTION before_that',
    'SAVE TRANSACTION before_that',
    'BEGIN TRY SELECT 1 END TRY BEGIN CATCH END CATCH',
  ])('lets %j through, which is the application’s own affair', async (text) => {
    await expect(source().tx.query(text, [])).rejects.toThrow('no server here');
  });

  it('is begun and ended by Relaybox alone', () => {
    const { tx } = source();
    for (const end of [() => tx.begin(), () => tx.commit(), () => tx.rollback()]) {
      expect(end).toThrow(TransactionError);
    }
  });

  it('is taken by the outbox as the transaction that it is', async () => {
    const { tx } = source();
    const outbox = sqlServerOutbox();
    const message = { destination: 'orders', messageType: 'order.placed', payload: {} };
    await expect(outbox.add(tx, message)).rejects.toThrow('no server here');
  });
});
