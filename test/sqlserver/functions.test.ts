import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import type { SQSEvent } from 'aws-lambda';
import { afterEach, expect, it } from 'vitest';
import { readSettings, type Settings } from '../../shared/lambda/config.ts';
import { maintainFor } from '../../shared/lambda/maintain.ts';
import { sqlServerAdmin } from '../../shared/lambda/sqlserver/admin.ts';
import {
  closeConnections,
  createIngest,
  inboxHandler,
  sqsConsumer,
  transactional,
} from '../../shared/lambda/sqlserver/index.ts';
import { onSqlServer } from './support/server.ts';

const context = (): { awsRequestId: string; getRemainingTimeInMillis: () => number } => {
  const end = Date.now() + 20_000;
  return { awsRequestId: 'r', getRemainingTimeInMillis: () => end - Date.now() };
};

/** What the queue delivers: only what is read of it. */
function delivery(id: string, messageType: string): SQSEvent {
  const attribute = (stringValue: string) => ({ stringValue, dataType: 'String' });
  const record = {
    messageId: `sqs-${id}`,
    body: JSON.stringify({ orderId: id }),
    messageAttributes: {
      'relaybox-id': attribute(id),
      'relaybox-type': attribute(messageType),
      'relaybox-source': attribute('somebody'),
    },
  };
  return { Records: [record] } as unknown as SQSEvent;
}

onSqlServer('the functions', (fixture) => {
  afterEach(closeConnections);

  const settingsOf = (): Settings =>
    readSettings({ RELAYBOX_DATABASE_URL: fixture().url, RELAYBOX_INBOX_SOURCE: 'orders-service' });

  async function effects(): Promise<void> {
    await fixture().rows(
      `IF OBJECT_ID(N'dbo.Written') IS NULL CREATE TABLE dbo.Written ([At] BIGINT IDENTITY PRIMARY KEY, [What] NVARCHAR(200) NOT NULL);`,
    );
  }

  async function written(what: string): Promise<number> {
    const [row] = await fixture().rows('SELECT COUNT(*) AS [count] FROM dbo.Written WHERE [What] = @p1', [
      what,
    ]);
    return Number(row?.['count']);
  }

  it('store a delivery once, handle it once, and add its messages in the same transaction', async () => {
    await effects();
    const settings = settingsOf();
    const [id, messageType] = [randomUUID(), `order.placed.${randomUUID()}`];
    const ingest = createIngest({ settings });
    for (let time = 0; time < 2; time++) {
      expect(await ingest(delivery(id, messageType), context())).toMatchObject({ batchItemFailures: [] });
    }
    const handler = inboxHandler({ messageType, settings }, async (message, { tx, outbox }) => {
      await tx.query('INSERT INTO dbo.Written ([What]) VALUES (@p1)', [message.id]);
      await outbox.add({
        destination: 'events',
        messageType: 'invoice.created',
        payload: { id: message.id },
      });
    });
    await handler({}, context());
    await handler({}, context());
    expect(await written(id)).toBe(1);
    const { names, rows } = fixture();
    const [added] = await rows(
      `SELECT COUNT(*) AS [count] FROM ${names.outbox} WHERE CHARINDEX(@p1, [Payload]) > 0`,
      [id],
    );
    expect(added?.['count']).toBe(1);
  });

  it('handle a repeated delivery straight from a queue once', async () => {
    await effects();
    const [id, messageType] = [randomUUID(), 'order.placed'];
    const consumer = sqsConsumer({ consumer: 'emails', settings: settingsOf() }, async (message, { tx }) => {
      await tx.query('INSERT INTO dbo.Written ([What]) VALUES (@p1)', [`mail ${message.id}`]);
    });
    for (let time = 0; time < 2; time++) {
      expect(await consumer(delivery(id, messageType), context())).toMatchObject({ batchItemFailures: [] });
    }
    expect(await written(`mail ${id}`)).toBe(1);
  });

  it('commit the work and its messages, and neither where the response says that it failed', async () => {
    await effects();
    const settings = settingsOf();
    const place = middy<{ what: string; statusCode: number }, { statusCode: number }>()
      .use(transactional({ settings }))
      .handler(async (event, { relaybox: { tx, outbox } }) => {
        await tx.request().input('what', event.what).query('INSERT INTO dbo.Written ([What]) VALUES (@what)');
        await outbox.add({
          destination: 'events',
          messageType: 'order.placed',
          payload: { what: event.what },
        });
        return { statusCode: event.statusCode };
      });
    const [good, bad] = [randomUUID(), randomUUID()];
    // Of the invocation's context only this is read.
    const invocation = context() as unknown as Parameters<typeof place>[1];
    await place({ what: good, statusCode: 201 }, invocation);
    await place({ what: bad, statusCode: 409 }, invocation);
    expect([await written(good), await written(bad)]).toEqual([1, 0]);
    const { names, rows } = fixture();
    const found = await rows(
      `SELECT [Payload] AS [payload] FROM ${names.outbox} WHERE CHARINDEX(@p1, [Payload]) > 0 OR CHARINDEX(@p2, [Payload]) > 0`,
      [good, bad],
    );
    expect(found.map(({ payload }) => JSON.parse(String(payload)))).toEqual([{ what: good }]);
  });

  it('run a whole cycle of maintenance', async () => {
    const maintain = maintainFor(sqlServerAdmin)({ settings: settingsOf() });
    expect(await maintain({}, context())).toMatchObject({ failed: {} });
    expect(await maintain({ command: 'health' }, context())).toMatchObject({ command: 'health' });
  });
});
