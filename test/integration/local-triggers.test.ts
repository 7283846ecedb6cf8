import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { SQSRecord } from 'aws-lambda';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FunctionHost } from '../../local/host.ts';
import { type LocalQueue, type LocalSqs, startSqs } from '../../local/sqs.ts';
import { startHttpTrigger } from '../../local/triggers/http.ts';
import { failedRecords, QueueTrigger, type QueueTriggerOptions } from '../../local/triggers/queue.ts';
import { Schedule } from '../../local/triggers/schedule.ts';
import { until } from '../support/until.ts';

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}.ts`, import.meta.url));
const invoked: unknown[] = [];
const host = new FunctionHost({ onInvocation: (report) => invoked.push(report.event) });
let sqs: LocalSqs;
let client: SQSClient;

beforeAll(async () => {
  sqs = await startSqs();
  client = new SQSClient({
    endpoint: sqs.endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  await host.add({ name: 'queue', entry: fixture('queue-function'), env: {}, timeoutMs: 5000 });
  await host.add({ name: 'sandbox', entry: fixture('sandbox-function'), env: {}, timeoutMs: 5000 });
});
afterAll(async () => {
  client.destroy();
  await host.stop();
  await sqs.stop();
});

async function send(queue: LocalQueue, ...bodies: string[]): Promise<void> {
  const Entries = bodies.map((MessageBody, index) => ({ Id: String(index), MessageBody }));
  await client.send(new SendMessageBatchCommand({ QueueUrl: queue.url, Entries }));
}

describe('local queue trigger: batches end as on AWS', () => {
  let trigger: QueueTrigger | undefined;
  const seen: { body: string; receives: number; delivered: boolean }[] = [];

  const poll = (queue: LocalQueue, more: Partial<QueueTriggerOptions> = {}) => {
    trigger = new QueueTrigger({
      host,
      functionName: 'queue',
      queue,
      endpoint: sqs.endpoint,
      onDelivery: ({ body, attributes }, delivered) =>
        seen.push({ body, receives: Number(attributes.ApproximateReceiveCount), delivered }),
      ...more,
    });
  };
  const isEmpty = async (queue: LocalQueue) => {
    const depth = await sqs.depth(queue);
    return depth.ready + depth.delayed + depth.inFlight === 0;
  };

  afterEach(async () => {
    await trigger?.stop();
    seen.length = 0;
  });

  it('deletes what was handled, brings back what was not, and hands it over in the end', async () => {
    const dead = await sqs.createQueue('orders-dead');
    const queue = await sqs.createQueue('orders', {
      visibilitySeconds: 1,
      deadLetter: { queue: dead, maxReceiveCount: 2 },
    });
    await send(queue, 'one', 'refuse this', 'two');
    poll(queue);
    await until(async () => (await sqs.depth(dead)).ready === 1, Boolean);
    expect(await sqs.bodies(dead)).toEqual(['refuse this']);
    expect(await isEmpty(queue)).toBe(true);
    expect(seen.filter(({ delivered }) => delivered).map(({ body }) => body)).toEqual(['one', 'two']);
    expect(seen.filter(({ body }) => body === 'refuse this').map(({ receives }) => receives)).toEqual([1, 2]);
  });

  it('repeats a delivery that was handled, when asked to', async () => {
    const queue = await sqs.createQueue('again', { visibilitySeconds: 1 });
    await send(queue, 'one', 'two');
    poll(queue, {
      repeat: ({ body, attributes }) => body === 'one' && attributes.ApproximateReceiveCount === '1',
    });
    await until(() => isEmpty(queue), Boolean);
    expect(seen.map(({ body }) => body).sort()).toEqual(['one', 'one', 'two']);
  });

  it('stops at once in the middle of a long poll', async () => {
    const queue = await sqs.createQueue('quiet');
    poll(queue);
    await sleep(100);
    const began = performance.now();
    await trigger?.stop();
    expect(performance.now() - began).toBeLessThan(1000);
  });
});

describe('local queue trigger: a response is read as AWS reads it', () => {
  const records = ['a', 'b'].map((messageId) => ({ messageId }) as SQSRecord);
  const cases: [string, unknown, string[]][] = [
    ['nothing', null, []],
    ['an object without the list', {}, []],
    ['a null list', { batchItemFailures: null }, []],
    ['an empty list', { batchItemFailures: [] }, []],
    ['a known id', { batchItemFailures: [{ itemIdentifier: 'b' }] }, ['b']],
    ['an unknown id', { batchItemFailures: [{ itemIdentifier: 'c' }] }, ['a', 'b']],
    ['an empty id', { batchItemFailures: [{ itemIdentifier: '' }] }, ['a', 'b']],
    ['a null id', { batchItemFailures: [{ itemIdentifier: null }] }, ['a', 'b']],
    ['a wrong key', { batchItemFailures: [{ id: 'a' }] }, ['a', 'b']],
    ['a bare string', 'ok', ['a', 'b']],
  ];
  it.each(cases)('%s', (_, response, failed) => {
    expect([...failedRecords(response, records)]).toEqual(failed);
  });
});

describe('local schedule and HTTP triggers', () => {
  it('a schedule invokes again and again, and no longer once it is stopped', async () => {
    invoked.length = 0;
    const schedule = new Schedule({ host, functionName: 'sandbox', everyMs: 50 });
    await until(() => invoked.length >= 3, Boolean);
    await schedule.stop();
    const count = invoked.length;
    await sleep(150);
    expect(invoked).toHaveLength(count);
    expect(invoked[0]).toMatchObject({ 'detail-type': 'Scheduled Event', source: 'aws.scheduler' });
  });

  it('an HTTP request becomes the event of a function URL, an error its 502', async () => {
    invoked.length = 0;
    const http = await startHttpTrigger({ host, routes: { 'POST /orders': 'sandbox' } });
    const body = JSON.stringify({ item: 'lamp' });
    const answer = await fetch(`${http.url}/orders?a=1`, { method: 'POST', body });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ functionName: 'sandbox' });
    expect(invoked[0]).toMatchObject({
      version: '2.0',
      rawPath: '/orders',
      rawQueryString: 'a=1',
      body,
      requestContext: { http: { method: 'POST' } },
    });
    expect((await fetch(`${http.url}/nothing`)).status).toBe(404);
    const large = await fetch(`${http.url}/orders`, { method: 'POST', body: 'x'.repeat(7 * 1024 * 1024) });
    expect(large.status).toBe(413);
    await http.stop();
  });
});
