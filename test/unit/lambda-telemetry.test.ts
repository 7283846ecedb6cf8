import { afterEach, describe, expect, it, vi } from 'vitest';
import { countZeros, lambdaTelemetry } from '../../shared/lambda/telemetry.ts';

interface Blob {
  readonly lane?: string;
  readonly _aws: {
    readonly CloudWatchMetrics: readonly [
      { readonly Dimensions: string[][]; readonly Metrics: readonly { Name: string; Unit: string }[] },
    ];
  };
  readonly [metric: string]: unknown;
}

/** What was written to standard output, line by line, as JSON. */
function capture(): { lines(): Record<string, unknown>[]; blobs(): Blob[] } {
  const written: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    written.push(String(chunk));
    return true;
  });
  const lines = () =>
    written
      .join('')
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { lines, blobs: () => lines().filter((line) => '_aws' in line) as unknown as Blob[] };
}

describe('metrics of an invocation', () => {
  afterEach(() => vi.restoreAllMocks());

  it('are one blob per lane, however often they were counted, and the lane is their only dimension beside the service', () => {
    const output = capture();
    const telemetry = lambdaTelemetry();
    for (let i = 0; i < 250; i++) telemetry.count('Published', 1, 'orders');
    telemetry.count('Published', 3, 'events');
    telemetry.count('Failed', 1, 'orders');
    telemetry.flush();

    const blobs = output.blobs();
    expect(blobs.map((blob) => blob.lane)).toEqual(['orders', 'events']);
    expect(blobs[0]).toMatchObject({ Published: 250, Failed: 1 });
    expect(blobs[1]).toMatchObject({ Published: 3 });
    expect(blobs[0]?._aws.CloudWatchMetrics[0].Dimensions).toEqual([['service', 'lane']]);
  });

  it('keep the higher of two readings of a state, and each duration', () => {
    const output = capture();
    const telemetry = lambdaTelemetry();
    telemetry.count('OldestDueAgeSeconds', 40, 'orders');
    telemetry.count('OldestDueAgeSeconds', 7, 'orders');
    for (let i = 0; i < 150; i++) telemetry.count('HandlerMs', i, 'orders');
    telemetry.flush();

    const [blob, ...others] = output.blobs();
    expect(others).toEqual([]);
    expect(blob?.['OldestDueAgeSeconds']).toBe(40);
    expect(blob?.['HandlerMs']).toHaveLength(99);
    expect(blob?._aws.CloudWatchMetrics[0].Metrics).toEqual([
      { Name: 'OldestDueAgeSeconds', Unit: 'Seconds' },
      { Name: 'HandlerMs', Unit: 'Milliseconds' },
    ]);
  });

  it('are written when they are zero, so that an alarm has data', () => {
    const output = capture();
    const telemetry = lambdaTelemetry();
    countZeros(telemetry, ['Failed', 'LostLeases'], ['orders', 'events']);
    telemetry.flush();
    expect(output.blobs()).toMatchObject([
      { lane: 'orders', Failed: 0, LostLeases: 0 },
      { lane: 'events', Failed: 0, LostLeases: 0 },
    ]);
  });

  it('are written once, and of two invocations at once each has its own', () => {
    const output = capture();
    const one = lambdaTelemetry();
    const two = lambdaTelemetry();
    one.count('Added', 1);
    two.count('Added', 2);
    one.flush();
    one.flush();
    two.flush();
    expect(output.blobs().map((blob) => blob['Added'])).toEqual([1, 2]);
  });

  it('leave out what is no number, rather than lose the blob', () => {
    const output = capture();
    const telemetry = lambdaTelemetry();
    telemetry.count('Backlog', Number.NaN, 'orders');
    telemetry.count('Published', 1, 'orders');
    telemetry.flush();
    expect(output.blobs()).toHaveLength(1);
  });
});

describe('log lines of an invocation', () => {
  afterEach(() => vi.restoreAllMocks());

  it('carry the request they belong to', () => {
    const output = capture();
    lambdaTelemetry({ awsRequestId: 'a' }).logger.info('one', { lane: 'orders' });
    lambdaTelemetry({ awsRequestId: 'b' }).logger.info('two');
    expect(output.lines()).toMatchObject([
      { message: 'one', function_request_id: 'a', lane: 'orders' },
      { message: 'two', function_request_id: 'b' },
    ]);
  });
});
