import { describe, expect, it, vi } from 'vitest';
import { acknowledge, readTrigger, type WorkReport, wakeNext } from '../../shared/lambda/wake-event.ts';

const sqs = (...bodies: string[]) => ({
  Records: bodies.map((body, index) => ({ messageId: `${index}`, body })),
});

describe("a worker's event", () => {
  it.each([
    ['of the schedule is a sweep', { source: 'aws.scheduler' }, { sweep: true }],
    ['that is none is a sweep', undefined, { sweep: true }],
    ['without records is a sweep', { Records: [] }, { sweep: true }],
    ['from the queue is a wake, with its hops', sqs('{"wakeHops":3}'), { wakeHops: 3 }],
    ['of two wakes has the fewer hops', sqs('{"wakeHops":3}', '{"wakeHops":0}'), {}],
    ['of somebody’s empty object is a wake', sqs('{}'), {}],
    ['with hops below zero is a wake without', sqs('{"wakeHops":-1}'), {}],
    ['that is a text is a stranger', sqs('x'), { strangers: 1 }],
    ['that is a message is a stranger', sqs('{"orderId":"42"}', '[]', 'null', '7'), { strangers: 4 }],
    ['that names wakes beside its own is a stranger', sqs('{"wakeHops":1,"id":"42"}'), { strangers: 1 }],
    [
      'of a wake and a message is both',
      sqs('{"wakeHops":2}', '{"orderId":"42"}'),
      { wakeHops: 2, strangers: 1 },
    ],
  ])('%s', (_, event, trigger) => {
    expect(readTrigger(event)).toEqual({ wakeHops: 0, sweep: false, strangers: 0, ...trigger });
  });

  it('is acknowledged where it is all wakes, and refused where a message would be deleted unread', () => {
    expect(acknowledge(readTrigger(sqs('{}', '{"wakeHops":1}')), 'the relay')).toEqual({
      batchItemFailures: [],
    });
    expect(() => acknowledge(readTrigger(sqs('{}', '{"orderId":"42"}')), 'the relay')).toThrow(
      'the relay was invoked with 1 SQS record that is no wake',
    );
  });
});

describe('the next run', () => {
  async function next(report: Partial<WorkReport>, wakeHops = 0) {
    const waker = { wake: vi.fn(async () => undefined), wakeIn: vi.fn(async () => undefined) };
    const count = vi.fn();
    const logger = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    const whole = { progress: false, workLeft: false, nextDueSeconds: undefined, ...report };
    await wakeNext(waker, whole, { wakeHops, sweep: false, strangers: 0 }, { logger, count });
    return { wake: waker.wake.mock.calls, wakeIn: waker.wakeIn.mock.calls, counts: count.mock.calls };
  }

  it('is not woken where nothing waits', async () => {
    expect(await next({ progress: true })).toEqual({ wake: [], wakeIn: [], counts: [] });
  });

  it('is woken at once where work was left, its chain begun anew after progress', async () => {
    expect(await next({ workLeft: true, progress: true, nextDueSeconds: 30 }, 7)).toMatchObject({
      wake: [[0]],
      wakeIn: [],
    });
    expect(await next({ workLeft: true }, 7)).toMatchObject({ wake: [[8]] });
  });

  it('is woken when what waits comes due', async () => {
    expect(await next({ nextDueSeconds: 40 }, 5)).toMatchObject({ wake: [], wakeIn: [[40, 0]] });
    expect(await next({ nextDueSeconds: 1.5 }, 5)).toMatchObject({ wakeIn: [[1.5, 6]] });
  });

  it('is left to the sweep, and counted, where a chain of wakes brought no progress', async () => {
    expect(await next({ workLeft: true }, 8)).toEqual({
      wake: [],
      wakeIn: [],
      counts: [['WakeHopLimit', 1, undefined]],
    });
    expect(await next({ nextDueSeconds: 0.2 }, 8)).toMatchObject({ wakeIn: [] });
  });
});
