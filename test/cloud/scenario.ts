import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { FailedResponse, FateResponse } from '../../shared/operations/responses.ts';
import type { Aws } from './aws.ts';
import type { CloudDatabase } from './database.ts';
import type { Context, Deployment } from './deploy.ts';
import { must, type Steps, until } from './steps.ts';

/** A setting that the second version of the deployment has. */
const change: Context = { 'relaybox:afterSuccess': 'delete' };
const cliMain = fileURLToPath(new URL('../../cli/main.ts', import.meta.url));

/** What the scenario works with. */
export interface Stage {
  readonly steps: Steps;
  readonly aws: Aws;
  readonly deployment: Deployment;
  readonly database: CloudDatabase;
  readonly environment: Readonly<Record<string, string>>;
  readonly context: Context;
}

/** The life of a deployment: first deploy, work, redeploys, a failed one, an operator's visit. */
export class Scenario {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  async run(): Promise<void> {
    const { steps } = this.#stage;
    await steps.step('bootstrap', () => this.#bootstrap());
    await steps.step('deploy', () => this.#deploy());
    await steps.step('each order has its invoice and its email', () => this.#orders(20));
    await steps.step('a second deploy changes nothing', () => this.#redeployUnchanged());
    await steps.step('a deploy with a change goes through', () => this.#redeployChanged());
    await steps.step('and orders still have their invoices', () => this.#orders(5));
    await steps.step('a failing migration rolls the deploy back', () => this.#failingMigration());
    await steps.step('and orders still have their invoices', () => this.#orders(5));
    await steps.step('a failed message is listed and requeued through the function', () => this.#requeue());
  }

  async #bootstrap(): Promise<undefined> {
    const { code, output } = await this.#stage.deployment.bootstrap(this.#stage.context);
    must(code === 0, output);
  }

  async #deploy(): Promise<string> {
    const { deployment, database, context } = this.#stage;
    const { code, output } = await deployment.deploy(context);
    must(code === 0, output);
    const { rows } = await database.pool.query('SELECT max(version) AS version FROM relaybox_schema_version');
    return `${(output.match(/CREATE_COMPLETE/g) ?? []).length} resources, schema version ${rows[0].version}`;
  }

  async #redeployUnchanged(): Promise<undefined> {
    const { deployment, context } = this.#stage;
    const { code, output } = await deployment.deploy(context);
    must(code === 0, output);
    must(/\(no changes\)/.test(output) && !/UPDATE_|CREATE_/.test(output), output);
  }

  async #redeployChanged(): Promise<undefined> {
    const { deployment, context } = this.#stage;
    const { code, output } = await deployment.deploy({ ...context, ...change });
    must(code === 0, output);
    must(/UPDATE_COMPLETE/.test(output), output);
  }

  /** A new schema for the tables, where something of somebody else's is in the migration's way. */
  async #failingMigration(): Promise<string> {
    const { deployment, database, context } = this.#stage;
    await database.pool.query('CREATE SCHEMA elsewhere');
    await database.pool.query('CREATE VIEW elsewhere.outbox_messages AS SELECT 1 AS id');
    const { code, output } = await deployment.deploy({
      ...context,
      ...change,
      'relaybox:schema': 'elsewhere',
    });
    must(code !== 0, `the deploy went through:\n${output}`);
    const event = output.split('\n').find((line) => /_FAILED.*Trigger/.test(line));
    must(event !== undefined, output);
    must(/ROLLBACK/.test(output), output);
    return event;
  }

  /** Places orders by the deployed function, and waits until each has one invoice and one email. */
  async #orders(count: number): Promise<string> {
    const { aws, deployment } = this.#stage;
    const before = await this.#counts();
    const placeOrder = deployment.output('PlaceOrderFunction');
    for (let n = 0; n < count; n++) {
      const body = JSON.stringify({ customer: `customer-${n}`, item: 'chair', amountCents: 1_000 + n });
      const answer = (await aws.invoke(placeOrder, { body })) as { readonly statusCode?: number };
      must(answer.statusCode === 201, JSON.stringify(answer));
    }
    let counts = before;
    // Deliveries that fail on the way come back after their visibility timeout of three minutes.
    await until('as many invoices and emails as orders', 240, async () => {
      counts = await this.#counts();
      return counts.invoices >= counts.orders && counts.emails >= counts.orders ? true : undefined;
    }).catch((error: Error) => {
      throw new Error(`${error.message}: ${JSON.stringify(counts)}`);
    });
    must(counts.orders === before.orders + count, JSON.stringify(counts));
    must(counts.doubled === 0 && counts.invoices === counts.orders, JSON.stringify(counts));
    return `orders = invoices: ${counts.orders} = ${counts.invoices}, emails: ${counts.emails}, doubled: ${counts.doubled}`;
  }

  /** A sender's mistake: an order without an amount. It ends Failed at once, is mended, and goes on. */
  async #requeue(): Promise<string> {
    const { aws, deployment, database } = this.#stage;
    const id = randomUUID();
    const orderId = randomUUID();
    const payload = { orderId, customer: 'somebody', item: 'table', amountCents: 0 };
    await aws.send(deployment.output('InboxQueueUrl'), JSON.stringify(payload), {
      'relaybox-id': id,
      'relaybox-type': 'order.placed',
    });
    const failed = await until('the message is listed as Failed', 90, async () => {
      const { inbox } = (await this.#relaybox('failed', '--inbox')) as { readonly inbox: FailedResponse };
      return inbox.messages.find(({ externalMessageId }) => externalMessageId === id);
    });
    must(/amountCents/.test(failed.lastError ?? ''), `the reason is not said: ${failed.lastError}`);
    await database.pool.query(
      `UPDATE inbox_messages SET payload = replace(payload, '"amountCents":0', '"amountCents":99') WHERE id = $1`,
      [failed.id],
    );
    const { changed } = (await this.#relaybox('requeue', failed.id, '--yes')) as FateResponse<'requeue'>;
    must(changed.length === 1, JSON.stringify(changed));
    await until('the requeued message has its effect', 90, async () => {
      const sql = 'SELECT FROM invoices WHERE order_id = $1 AND amount_cents = 99';
      return (await database.pool.query(sql, [orderId])).rowCount === 1 ? true : undefined;
    });
    const { inbox } = (await this.#relaybox('failed', '--inbox')) as { readonly inbox: FailedResponse };
    must(inbox.messages.length === 0, JSON.stringify(inbox));
    return failed.lastError ?? '';
  }

  async #counts(): Promise<Counts> {
    const { rows } = await this.#stage.database.pool.query(`
      SELECT (SELECT count(*) FROM orders)::int AS orders,
             (SELECT count(*) FROM invoices)::int AS invoices,
             (SELECT count(*) FROM emails)::int AS emails,
             (SELECT count(*) FROM (SELECT FROM invoices GROUP BY order_id HAVING count(*) > 1) AS twice)::int
           + (SELECT count(*) FROM (SELECT FROM emails GROUP BY order_id HAVING count(*) > 1) AS twice)::int AS doubled`);
    return rows[0] as Counts;
  }

  /** `relaybox … --function`, as an operator types it. */
  async #relaybox(...args: readonly string[]): Promise<unknown> {
    const { deployment, environment } = this.#stage;
    const all = [cliMain, ...args, '--function', deployment.output('MaintainFunction'), '--json'];
    const env = { PATH: process.env['PATH'] ?? '', ...environment };
    return await new Promise((resolve, reject) => {
      execFile(process.execPath, all, { env, timeout: 60_000 }, (error, stdout, stderr) => {
        if (error === null) resolve(JSON.parse(stdout));
        else reject(new Error(`relaybox ${args.join(' ')} ended with ${error.code}:\n${stdout}\n${stderr}`));
      });
    });
  }
}

interface Counts {
  readonly orders: number;
  readonly invoices: number;
  readonly emails: number;
  /** Orders with two invoices or two emails. */
  readonly doubled: number;
}
