import { describe, expect, test } from 'vitest';
import { checkDeployment, checkNames, report } from '../../infra/checks/index.ts';
import { deadLetterQueue, healthy, inbox, queue, source } from './healthy.ts';

/** One failure, one unknown, one warning. */
const troubled = healthy({
  eventSources: [
    source({
      queue: queue({
        visibilitySeconds: 60,
        deadLetterQueue: deadLetterQueue({ maxReceiveCount: undefined }),
      }),
    }),
  ],
  destinations: [{ name: 'orders', transport: 'sqs', keyed: true }],
});

describe('one list', () => {
  test('a sound deployment passes every check, and each has looked at something', () => {
    const findings = checkDeployment(healthy());
    expect(findings.filter(({ answer }) => answer !== 'pass')).toEqual([]);
    expect(new Set(findings.map(({ check }) => check))).toEqual(new Set(checkNames));
  });

  test('failures come first, each with values and fix; what passed is only counted', () => {
    expect(report(checkDeployment(troubled))).toMatchInlineSnapshot(`
      "Relaybox checked this deployment: 1 fail, 1 unknown, 1 warning, 15 pass
        FAIL visibility · App/Incoming
          The visibility timeout is 60 s, shorter than 6 × the timeout of App/Relaybox/Ingest (60 s) = 360 s.
          Fix: set visibilityTimeout: Duration.seconds(360) on the queue, or the function's timeout to Duration.seconds(10) or less.
        UNKNOWN receive-count · App/Incoming
          After how many receives a message goes to the dead-letter queue is not known; it must be 5 or more.
          Fix: say so with inboxes: [{ …, queueFacts: { deadLetterQueue: { maxReceiveCount } } }].
        WARNING order · destination orders
          Its messages carry partition keys, but a standard queue keeps no order: they are published in order and may arrive in another.
          Fix: send them to a FIFO queue, or let their handlers work in any order."
    `);
  });

  test('what passed is listed when asked for', () => {
    const text = report(checkDeployment(healthy()), { all: true });
    expect(text).toContain('PASS visibility · App/Incoming');
  });

  test('every finding that is no pass says what to do, and an unknown names its prop', () => {
    const nothing = healthy({
      inboxes: [
        inbox({
          queue: queue({ retentionSeconds: undefined, deadLetterQueue: undefined, encryption: undefined }),
        }),
      ],
      network: { kind: 'vpc', id: 'App/Vpc', route: undefined, elsewhere: [], endpoints: undefined },
      database: {
        id: 'Db',
        maxConnections: undefined,
        otherConnections: 0,
        pausesAfterSeconds: undefined,
        credentials: 'secret',
      },
    });
    const open = [...checkDeployment(nothing), ...checkDeployment(troubled)].filter(
      ({ answer }) => answer !== 'pass',
    );
    for (const finding of open) {
      expect(finding.fix, finding.message).toBeTruthy();
      if (finding.answer === 'unknown') expect(finding.prop, finding.message).toBeTruthy();
    }
  });
});

describe('a person can answer for a finding', () => {
  test('an accepted failure no longer fails, and its reason is in the report', () => {
    const findings = checkDeployment(troubled, [
      { check: 'visibility', subject: 'App/Incoming', reason: 'the timeout goes down next week' },
    ]);
    expect(findings.filter(({ answer }) => answer === 'fail')).toEqual([]);
    expect(report(findings)).toContain('Accepted: the timeout goes down next week');
  });

  test('it covers the subject it names, and no other', () => {
    const findings = checkDeployment(troubled, [
      { check: 'visibility', subject: 'App/Other', reason: 'not this one' },
    ]);
    expect(findings.some(({ answer }) => answer === 'fail')).toBe(true);
  });

  test('without a subject it covers every finding of its check', () => {
    const findings = checkDeployment(troubled, [{ check: 'visibility', reason: 'raised next week' }]);
    expect(findings.some(({ answer }) => answer === 'fail')).toBe(false);
  });

  test('one that accepts nothing is a warning, lest it hide a later finding', () => {
    const findings = checkDeployment(healthy(), [{ check: 'egress', reason: 'a firewall elsewhere' }]);
    expect(findings.filter(({ answer }) => answer === 'warning')).toMatchObject([
      { check: 'egress', message: expect.stringContaining('a firewall elsewhere') },
    ]);
  });
});
