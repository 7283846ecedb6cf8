import { expect, test, vi } from 'vitest';
import { saidOf } from './checked-app.ts';
import { theApp } from './the-app.ts';

vi.mock('../../infra/constructs/bundles.ts', async () => {
  const { inline } = await import('./inline.ts');
  return { bundle: () => inline };
});

// A synth is a second of work, and a machine may be busy.
vi.setConfig({ testTimeout: 90_000 });

const source = 'payments-service';
const queueArn = 'arn:aws:sqs:eu-west-1:123456789012:in';

function saidWith(context: Record<string, unknown>): string {
  return saidOf({ stack: theApp(context) });
}

test("an existing queue is asked about, and the context's queueFacts answer", () => {
  expect(saidWith({ 'relaybox:inboxes': [{ source, queueArn }] })).toContain('UNKNOWN visibility');
  const queueFacts = {
    visibilitySeconds: 180,
    retentionDays: 4,
    encryption: 'sqs',
    deadLetterQueue: { maxReceiveCount: 5, retentionDays: 14, fifo: false },
  };
  expect(saidWith({ 'relaybox:inboxes': [{ source, queueArn, queueFacts }] })).not.toContain('UNKNOWN');
});

test('facts that break a rule fail the synth as if they were seen', () => {
  const queueFacts = { visibilitySeconds: 30, deadLetterQueue: false, retentionDays: 4, encryption: 'sqs' };
  const said = saidWith({ 'relaybox:inboxes': [{ source, queueArn, queueFacts }] });
  expect(said).toContain('FAIL visibility');
  expect(said).toContain('WARNING receive-count');
});

test('a finding is accepted in the context', () => {
  const said = saidWith({
    'relaybox:inboxes': [{ source, queueArn, queueFacts: { visibilitySeconds: 30 } }],
    'relaybox:acceptedFindings': [{ check: 'visibility', reason: 'raised next week' }],
  });
  expect(said).not.toContain('FAIL');
});

test('what is wrong in them is said in one error, by its path', () => {
  const context = {
    'relaybox:inboxes': [{ source, queueArn, queueFacts: { visibility: 30, encryption: 'rot13' } }],
    'relaybox:acceptedFindings': [{ check: 'everything' }],
  };
  expect(() => theApp(context)).toThrow(
    /queueFacts\.encryption must be one of none, sqs.*queueFacts\.visibility must be left out.*acceptedFindings\[0\]\.check must be one of lease/,
  );
});
