import { afterAll, expect, it } from 'vitest';
import { inboxLanes, inboxStatus } from '../../../shared/store/postgres/sql/operations-status-inbox.ts';
import { outboxLanes, outboxStatus } from '../../../shared/store/postgres/sql/operations-status-outbox.ts';
import { createMigratedDatabase } from '../../support/migrated.ts';

const history = 200_000;
const { pool, tables, drop } = await createMigratedDatabase();
afterAll(() => drop());

interface PlanNode {
  readonly [name: string]: unknown;
  readonly Plans?: readonly PlanNode[];
}

function nodes(plan: PlanNode): readonly PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}

async function planOf(text: string, values: readonly unknown[]): Promise<PlanNode> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN; SET LOCAL enable_seqscan = off');
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values]);
    return rows[0]['QUERY PLAN'][0].Plan;
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

it('status reads partial indexes only: 200,000 rows of history cost no page', async () => {
  await pool.query(
    `INSERT INTO outbox_messages (id, destination, message_type, payload, created_at_utc, state, processed_at_utc)
     SELECT gen_random_uuid(), 'orders', 'order.placed', '{}', now(), CASE WHEN n < 9 THEN 0 ELSE 2 END, CASE WHEN n < 9 THEN NULL ELSE now() END
     FROM generate_series(1, ${history}) AS n`,
  );
  await pool.query(
    `INSERT INTO inbox_messages (id, source, external_message_id, message_type, payload, created_at_utc, state, processed_at_utc)
     SELECT gen_random_uuid(), 'shop', 'm' || n, 'order.placed', '{}', now(), CASE WHEN n < 9 THEN 0 ELSE 2 END, CASE WHEN n < 9 THEN NULL ELSE now() END
     FROM generate_series(1, ${history}) AS n`,
  );
  await pool.query('VACUUM ANALYZE outbox_messages, inbox_messages');
  const lanes = [
    ['', '', 'emails'],
    ['order.placed', 'order.cancelled', 'order.placed'],
  ];
  for (const [text, values] of [
    [outboxLanes(tables), [500]],
    [outboxStatus(tables), [['orders', 'events']]],
    [inboxLanes(tables), [500]],
    [inboxStatus(tables), lanes],
  ] as const) {
    const plan = await planOf(text, values);
    const big = nodes(plan).filter((node) =>
      ['outbox_messages', 'inbox_messages'].includes(String(node['Relation Name'])),
    );
    expect(big.filter((node) => node['Node Type'] === 'Seq Scan')).toEqual([]);
    const used = big.map((node) => String(node['Index Name']));
    expect(used.filter((name) => /_(pkey|ended|identity)$/.test(name))).toEqual([]);
    expect(Number(plan['Shared Hit Blocks']) + Number(plan['Shared Read Blocks'])).toBeLessThan(1000);
  }
}, 60_000);
