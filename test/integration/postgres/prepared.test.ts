import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect } from '../../../shared/store/postgres/connections.ts';
import { prepared } from '../../../shared/store/postgres/prepared.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createDatabase();
});
afterAll(() => database.drop());

const marked = prepared('SELECT $1::int + 1 AS sum');
const known = 'SELECT count(*)::int AS n FROM pg_prepared_statements';

function settings(proxy: boolean) {
  const { hostname, port, pathname, username, password } = new URL(database.url);
  return {
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    user: username,
    credentials: { password },
    proxy,
  };
}

it.each([
  { proxy: false, statements: 1 },
  { proxy: true, statements: 0 },
])(
  'a marked statement is prepared once per connection, and never behind a proxy (proxy: $proxy)',
  async (given) => {
    const connected = connect(settings(given.proxy), { max: 1 });
    for (const n of [1, 2]) expect((await connected.query(marked, [n])).rows).toEqual([{ sum: n + 1 }]);
    await connected.query('SELECT $1::int AS plain', [1]);
    expect((await connected.query(known)).rows).toEqual([{ n: given.statements }]);
    await connected.end();
  },
);

it('a connection that turns out not to have the statement is replaced, and the statement runs once', async () => {
  const connected = connect(settings(false), { max: 1 });
  await connected.query(marked, [1]);
  await connected.query('DEALLOCATE ALL');
  expect((await connected.query(marked, [2])).rows).toEqual([{ sum: 3 }]);
  await connected.end();
});
