import { describe, expect, it, vi } from 'vitest';
import { readTrigger, type WorkReport, wakeNext } from '../../shared/lambda/wake-event.ts';

const sqs = (...bodies: string[]) => ({
  Records: bodies.map((body, index) => ({ messageId: `${index}`, body })),
});

describe("a worker's event", () => {
  it.each([
    ['of the schedule is a sweep', { source: 'aws.scheduler' }, { wakeHops: 0, sweep: true }],
    ['that is none is a sweep', undefined, { wakeHops: 0, sweep: true }],
    ['without records is a sweep', { Records: [] }, { wakeHops: 0, sweep: true }],
    ['from the queue is a wake, with its hops', sqs('{"wakeHops":3}'), { wakeHops: 3, sweep: false }],
    [
      'of two wakes has the fewer hops',
      sqs('{"wakeHops":3}', '{"wakeHops":0}'),
      { wakeHops: 0, sweep: false },
    ],
    ['of somebody else’s text is a wake', sqs('x'), { wakeHops: 0, sweep: false }],
    ['with hops below zero is a wake without', sqs('{"wakeHops":-1}'), { wakeHops: 0, sweep: false }],
  ])('%s', (_, event, trigger) => {
    expect(readTrigger(event)).toEqual(trigger);
  });
});

describe('the next run', () => {
  async function next(report: Partial<WorkReport>, wakeHops = 0) {
    const waker = { wake: vi.fn(async () => undefined), wakeIn: vi.fn(async () => undefined) };
    const count = vi.fn();
    const logger = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
    const whole = { progress: false, workLeft: false, nextDueSeconds: undefined, ...report };
    await wakeNext(waker, whole, { wakeHops, sweep: false }, { logger, count });
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
