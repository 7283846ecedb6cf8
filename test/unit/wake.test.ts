import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createWaker, readWakeHops, wakeBody, wakeTypes } from '../../shared/outbox/wake.ts';

function recorder(send: () => Promise<void> = async () => undefined) {
  const sent: { hops: number; delay: number }[] = [];
  const waker = createWaker(
    async (body, delay) => {
      sent.push({ hops: readWakeHops(body) ?? Number.NaN, delay });
      await send();
    },
    { windowMs: 60, timeoutMs: 40 },
  );
  return { sent, waker };
}

describe('a wake is throttled, and the last one of a burst is never dropped', () => {
  test('the first goes at once, one more goes delayed by a second, the rest are covered by it', async () => {
    const { sent, waker } = recorder();
    for (let n = 0; n < 20; n++) await waker.wake();
    expect(sent).toEqual([
      { hops: 0, delay: 0 },
      { hops: 0, delay: 1 },
    ]);
  });

  test('after the window the next one goes at once again', async () => {
    const { sent, waker } = recorder();
    await waker.wake();
    await sleep(70);
    await waker.wake();
    await waker.wake();
    expect(sent.map(({ delay }) => delay)).toEqual([0, 0, 1]);
  });

  test('a wake that failed covers nobody', async () => {
    const { sent, waker } = recorder(async () => {
      throw new Error('no queue');
    });
    await waker.wake();
    await waker.wake();
    expect(sent.map(({ delay }) => delay)).toEqual([0, 0]);
  });

  test('fresh work is not covered by a wake that is near its hop limit', async () => {
    const { sent, waker } = recorder();
    await waker.wake(7);
    await waker.wake(7);
    await waker.wake(0);
    expect(sent).toEqual([
      { hops: 7, delay: 0 },
      { hops: 7, delay: 1 },
      { hops: 0, delay: 1 },
    ]);
  });
});

describe('a wake is a hint', () => {
  test('it never rejects, and costs its caller no more than its limit', async () => {
    const { waker } = recorder(() => sleep(5_000, undefined, { ref: false }));
    const began = performance.now();
    await waker.wake();
    expect(performance.now() - began).toBeLessThan(4_500);
    const throwing = createWaker(() => {
      throw new Error('at once');
    });
    await expect(throwing.wake()).resolves.toBe(undefined);
  });

  test('a retry that is due soon gets a delayed wake, one that is due late is left to the sweep', async () => {
    const { sent, waker } = recorder();
    await waker.wakeIn(4.2);
    await waker.wakeIn(900);
    await waker.wakeIn(900.1);
    await waker.wakeIn(Number.NaN);
    expect(sent.map(({ delay }) => delay)).toEqual([5, 900]);
  });

  test('two of one instant are one', async () => {
    const { sent, waker } = recorder();
    await waker.wakeIn(30);
    await waker.wakeIn(30);
    await waker.wakeIn(29.6);
    await waker.wakeIn(10);
    expect(sent.map(({ delay }) => delay)).toEqual([30, 10]);
  });

  test('what is due already is a wake for now', async () => {
    const { sent, waker } = recorder();
    await waker.wakeIn(-3);
    expect(sent.map(({ delay }) => delay)).toEqual([0]);
  });

  test('types are woken once each, and one without a queue is left out', async () => {
    const orders = recorder();
    await wakeTypes(new Map([['order.placed', orders.waker]]), ['order.placed', 'order.placed', 'other']);
    expect(orders.sent).toHaveLength(1);
  });

  test('its body tells the hops; an object that says nothing is one without, and any other body is no wake', () => {
    expect(readWakeHops(wakeBody(3))).toBe(3);
    for (const body of ['{}', '{"wakeHops":"3"}', '{"wakeHops":-1}', '{"wakeHops":1.5}']) {
      expect(readWakeHops(body)).toBe(0);
    }
    for (const body of ['', 'no JSON', 'null', '[]', '5', '{"orderId":"42"}', '{"wakeHops":1,"id":2}']) {
      expect(readWakeHops(body)).toBeUndefined();
    }
  });
});
