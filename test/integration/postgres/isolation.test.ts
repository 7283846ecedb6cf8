import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { connect, type PostgresDatabase } from '../../../shared/store/postgres/connections.ts';
import { postgresInboxStore } from '../../../shared/store/postgres/inbox-store.ts';
import { postgresOperations } from '../../../shared/store/postgres/operations.ts';
import { postgresOutboxStore } from '../../../shared/store/postgres/outbox-store.ts';
import { claimRequest, inboxRow, limits } from '../../support/inbox-rows.ts';
import { createMigratedDatabase } from '../../support/migrated.ts';

const strict = await createMigratedDatabase({ default_transaction_isolation: 'serializable' });
const usual = await createMigratedDatabase();
const opened: PostgresDatabase[] = [];

afterEach(async () => {
  await Promise.all(opened.splice(0).map((database) => database.end()));
});

afterAll(async () => {
  await strict.drop();
  await usual.drop();
});

function open(url = strict.url): PostgresDatabase {
  const database = connect({ url });
  opened.push(database);
  return database;
}

/** The same database, as a function behind a proxy reaches it. */
function behindProxy(): PostgresDatabase {
  const { hostname, port, pathname, username, password } = new URL(strict.url);
  const database = connect({
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    user: username,
    credentials: { password },
    proxy: true,
  });
  opened.push(database);
  return database;
}

async function isolation(database: PostgresDatabase): Promise<unknown> {
  const { rows } = await database.query('SHOW transaction_isolation');
  return rows[0]?.['transaction_isolation'];
}

describe('on a database whose default isolation is serializable', () => {
  test('statements on autocommit run at READ COMMITTED', async () => {
    expect(await isolation(open())).toBe('read committed');
  });

  test('they still do after a handler has set its own, on the same connection', async () => {
    const database = connect({ url: strict.url }, { max: 1 });
    opened.push(database);
    const transaction = await database.begin(limits);
    await transaction.tx.query("SET default_transaction_isolation = 'repeatable read'");
    await transaction.commit();
    expect(await isolation(database)).toBe('read committed');
  });

  test('workers at the same moment ingest, claim and handle, and none ends in 40001', async () => {
    const stores = [1, 2, 3, 4].map(() => postgresInboxStore(open(), strict.tables));
    const [store] = stores;
    let handled = 0;
    await Promise.all(
      stores.map(async (each, worker) => {
        for (let round = 0; round < 6; round++) {
          const keys = Array.from({ length: 20 }, (_, n) => (n % 2 ? `k${n % 5}` : null));
          await each.ingest(
            keys.map((partitionKey, n) =>
              inboxRow({ partitionKey, externalMessageId: `${(worker >> 1) * 1000 + round * 100 + n}` }),
            ),
          );
          const { messages } = await each.claim(claimRequest({ limit: 10 }));
          for (const message of messages) {
            const transaction = await each.begin(limits);
            if (await each.markProcessed(transaction, message)) handled += 1;
            await transaction.commit();
          }
        }
      }),
    );
    expect(handled).toBeGreaterThan(50);
    expect(await store?.reachable()).toBe(true);
  });

  test('behind a proxy nothing is set, since that would pin the session, and the doctor says what to do', async () => {
    const database = behindProxy();
    expect(await isolation(database)).toBe('serializable');
    const leases = postgresOutboxStore(database, strict.tables);
    const { operations } = postgresOperations({ source: database, leases });
    const { findings } = await operations.doctor({ command: 'doctor' });
    expect(findings.filter(({ check }) => check === 'connection')).toMatchObject([
      {
        severity: 'warning',
        what: expect.stringMatching(/default isolation of the login ".+" is serializable/),
        todo: expect.stringContaining("SET default_transaction_isolation = 'read committed'"),
      },
    ]);
  });
});

test('on any other database nothing is set, so that a pooler hands nothing on to other programs', async () => {
  const { rows } = await open(usual.url).query(
    `SELECT setting, source FROM pg_settings WHERE name = 'default_transaction_isolation'`,
  );
  expect(rows).toEqual([{ setting: 'read committed', source: 'default' }]);
});
