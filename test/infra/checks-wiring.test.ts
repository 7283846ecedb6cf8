import { describe, expect, test } from 'vitest';
import { checkDeployment, type DeploymentFacts } from '../../infra/checks/index.ts';
import { findingOf, messageOf } from './finding-of.ts';
import { deadLetterQueue, healthy, inbox, queue, source } from './healthy.ts';

type Vpc = Extract<DeploymentFacts['network'], { kind: 'vpc' }>;
const vpc: Vpc = { kind: 'vpc', id: 'App/Vpc', route: 'none', elsewhere: [], endpoints: [] };

/** Without a bus and with IAM, only SQS is needed. */
function onlySqs(network: DeploymentFacts['network']): DeploymentFacts {
  return healthy({
    network,
    destinations: [],
    database: {
      id: 'Db',
      maxConnections: 84,
      otherConnections: 0,
      pausesAfterSeconds: undefined,
      credentials: 'iam',
    },
  });
}

/** A fact as a title shows it. */
const said = (fact: unknown): string => (fact === undefined ? 'unknown' : String(fact));

function egress(network: Partial<Vpc>) {
  return findingOf(onlySqs({ ...vpc, ...network }), 'egress', 'App/Vpc');
}

describe('functions reach the services that they call', () => {
  test('no endpoint and no route fails, and names the endpoint to add', () => {
    expect(messageOf(onlySqs(vpc), 'egress', 'App/Vpc')).toMatchInlineSnapshot(`
      "  FAIL egress · App/Vpc
          SQS (to wake functions and to send to queues) cannot be reached: the VPC has no endpoint for it, and the functions' subnets have no route out.
          Fix: add an endpoint (vpc.addInterfaceEndpoint('SQS', { service: ec2.InterfaceVpcEndpointAwsService.SQS })), or take subnets with a route to a NAT, or say egress: 'provided' where the way is made elsewhere."
    `);
  });

  test('each service that is needed is looked at, and no other', () => {
    const missing = (facts: DeploymentFacts) =>
      checkDeployment(facts).filter(({ check, answer }) => check === 'egress' && answer === 'fail');
    expect(missing(healthy({ network: vpc })).map(({ message }) => message.split(' (')[0])).toEqual([
      'SQS',
      'EventBridge',
      'Secrets Manager',
    ]);
    expect(missing(onlySqs(vpc))).toHaveLength(1);
  });

  test('an endpoint or a NAT passes', () => {
    expect(egress({ endpoints: [{ service: 'sqs', privateDns: true }] }).answer).toBe('pass');
    expect(egress({ route: 'nat' }).answer).toBe('pass');
    expect(egress({ route: 'nat', endpoints: undefined }).answer).toBe('pass');
  });

  test('public subnets fail: a function has no public address', () => {
    const found = egress({ route: 'internet-gateway' });
    expect([found.answer, found.message]).toEqual(['fail', expect.stringContaining('no public address')]);
  });

  test('an endpoint without private DNS fails', () => {
    const found = egress({ endpoints: [{ service: 'sqs', privateDns: false }] });
    expect([found.answer, found.fix]).toEqual(['fail', expect.stringContaining('privateDnsEnabled: true')]);
    expect(egress({ endpoints: [{ service: 'sqs', privateDns: undefined }] }).answer).toBe('unknown');
  });

  test('a function in subnets of its own is looked at from there, for what it calls itself', () => {
    const elsewhere = [{ function: 'App/PlaceOrder', route: 'none' as const }];
    const facts = healthy({ network: { ...vpc, route: 'nat', elsewhere } });
    const found = checkDeployment(facts).filter(
      ({ check, answer }) => check === 'egress' && answer === 'fail',
    );
    expect(found.map(({ subject, message }) => [subject, message.split(' (')[0]])).toEqual([
      ['App/PlaceOrder', 'SQS'],
      ['App/PlaceOrder', 'Secrets Manager'],
    ]);
  });

  test("an imported VPC is unknown, and egress: 'provided' supplies the fact", () => {
    const found = egress({ route: undefined, endpoints: undefined });
    expect([found.answer, found.prop]).toEqual(['unknown', "egress: 'provided'"]);
    expect(egress({ endpoints: undefined }).answer).toBe('unknown');
    expect(egress({ route: undefined }).answer).toBe('unknown');
    expect(findingOf(onlySqs({ kind: 'provided' }), 'egress', 'network').answer).toBe('pass');
  });

  test('functions outside a VPC pass', () => {
    expect(findingOf(onlySqs({ kind: 'public' }), 'egress', 'network').answer).toBe('pass');
  });
});

describe('a dead-letter queue is of its queue’s kind', () => {
  test('a FIFO queue with a standard one fails', () => {
    const facts = healthy({ eventSources: [source({ queue: queue({ fifo: true }) })] });
    expect(messageOf(facts, 'dead-letter-queue', 'App/Incoming')).toMatchInlineSnapshot(`
      "  FAIL dead-letter-queue · App/Incoming
          The queue is FIFO, but its dead-letter queue App/IncomingDead is standard: SQS refuses it.
          Fix: give it a FIFO dead-letter queue (fifo: true)."
    `);
  });

  test("a destination's queue too, where its dead-letter queue is known", () => {
    const orders = queue({ id: 'App/Orders', deadLetterQueue: deadLetterQueue({ fifo: true }) });
    const to = (destination: typeof orders) =>
      healthy({ destinations: [{ name: 'o', transport: 'sqs', keyed: false, queue: destination }] });
    expect(findingOf(to(orders), 'dead-letter-queue', 'App/Orders').answer).toBe('fail');
    expect(() =>
      findingOf(to({ ...orders, deadLetterQueue: undefined }), 'dead-letter-queue', 'App/Orders'),
    ).toThrow('0 findings');
  });

  test('not knowing it is unknown', () => {
    const facts = healthy({ eventSources: [source({ queue: queue({ deadLetterQueue: undefined }) })] });
    expect(findingOf(facts, 'dead-letter-queue', 'App/Incoming').answer).toBe('unknown');
  });
});

describe('a message has time left in its dead-letter queue', () => {
  const found = (retentionSeconds: number, fifo = false) => {
    const dead = deadLetterQueue({ retentionSeconds, fifo });
    const facts = healthy({ eventSources: [source({ queue: queue({ deadLetterQueue: dead, fifo }) })] });
    return findingOf(facts, 'dead-letter-queue', 'App/Incoming');
  };

  test("no longer a retention than the queue's is a warning: a standard queue counts from the first send", () => {
    expect(found(4 * 86_400)).toMatchObject({
      answer: 'warning',
      message: expect.stringContaining('App/IncomingDead retains 4 days and the queue 4 days'),
      fix: 'set retentionPeriod: Duration.days(14) on the dead-letter queue',
    });
    expect(found(4 * 86_400 + 1).answer).toBe('pass');
  });

  test('a FIFO queue counts anew when it moves a message', () => {
    expect(found(4 * 86_400, true).answer).toBe('pass');
  });
});

describe('one function per message type', () => {
  test('two for one type fail, and both are named', () => {
    const facts = healthy({
      handlers: [
        { function: 'App/A', consumer: '', messageType: 'order.placed' },
        { function: 'App/B', consumer: '', messageType: 'order.placed' },
      ],
    });
    expect(messageOf(facts, 'handlers', 'order.placed')).toMatchInlineSnapshot(`
      "  FAIL handlers · order.placed
          2 functions handle this type: App/A, App/B. Each would get a part of its messages.
          Fix: keep one of them, or give each a consumer of its own with an inbox of its own."
    `);
  });

  test('two consumers of one type are no conflict', () => {
    const facts = healthy({
      handlers: [
        { function: 'App/A', consumer: '', messageType: 'order.placed' },
        { function: 'App/B', consumer: 'emails', messageType: 'order.placed' },
      ],
    });
    expect(findingOf(facts, 'handlers', 'order.placed').answer).toBe('pass');
    expect(findingOf(facts, 'handlers', 'order.placed for emails').answer).toBe('pass');
  });
});

describe('no key stands between a bus and its events', () => {
  type BusEncryption = DeploymentFacts['destinations'][number]['busEncryption'];
  const bus = (busEncryption: BusEncryption) =>
    healthy({ destinations: [{ name: 'events', transport: 'eventbridge', keyed: false, busEncryption }] });
  const key = (allowsEvents: boolean | undefined) => bus({ keyId: 'App/Key', allowsEvents });

  test("a bus's key that EventBridge may not use fails", () => {
    expect(messageOf(key(false), 'event-bus-key', 'destination events')).toMatchInlineSnapshot(`
      "  FAIL event-bus-key · destination events
          The event bus is encrypted with App/Key, whose policy does not let EventBridge use it: events are accepted and then dropped.
          Fix: allow events.amazonaws.com kms:DescribeKey, kms:GenerateDataKey and kms:Decrypt in the key's policy, with aws:SourceArn set to the bus."
    `);
  });

  test('a key that it may use passes; a policy or an encryption that is not known is unknown', () => {
    const answer = (facts: DeploymentFacts) => findingOf(facts, 'event-bus-key', 'destination events').answer;
    expect(answer(key(true))).toBe('pass');
    expect(answer(bus('aws'))).toBe('pass');
    expect(answer(key(undefined))).toBe('unknown');
    expect(answer(bus(undefined))).toBe('unknown');
  });

  const queues = [
    ['kms-managed', undefined, true, 'fail'],
    ['kms-managed', undefined, undefined, 'warning'],
    ['kms-managed', undefined, false, 'pass'],
    ['kms', false, true, 'fail'],
    ['kms', false, undefined, 'warning'],
    ['kms', undefined, true, 'unknown'],
    ['kms', true, true, 'pass'],
    ['sqs', undefined, true, 'pass'],
    [undefined, undefined, true, 'unknown'],
    [undefined, undefined, false, 'pass'],
  ] as const;
  const titleOf = ([encryption, key, rule, answer]: (typeof queues)[number]): string =>
    `an inbox queue with encryption ${said(encryption)}, key allows events ${said(key)}, fed by a rule ${said(rule)}: ${answer}`;
  test.each(queues.map((facts) => [titleOf(facts), facts] as const))(
    '%s',
    (_, [encryption, keyAllowsEvents, fedByEventBridge, answer]) => {
      const facts = healthy({
        inboxes: [inbox({ queue: queue({ encryption, keyAllowsEvents, fedByEventBridge }) })],
      });
      expect(findingOf(facts, 'event-bus-key', 'App/Incoming').answer).toBe(answer);
    },
  );
});

describe('keys go where order is kept, or it is said', () => {
  const to = (transport: 'sqs' | 'sqs-fifo' | 'eventbridge' | undefined, keyed: boolean | undefined) =>
    healthy({ destinations: [{ name: 'd', transport, keyed }] });

  test('a keyed destination on a standard queue is a warning', () => {
    expect(messageOf(to('sqs', true), 'order', 'destination d')).toMatchInlineSnapshot(`
      "  WARNING order · destination d
          Its messages carry partition keys, but a standard queue keeps no order: they are published in order and may arrive in another.
          Fix: send them to a FIFO queue, or let their handlers work in any order."
    `);
  });

  const destinations = [
    ['eventbridge', true, 'warning'],
    ['eventbridge', undefined, 'unknown'],
    ['sqs', undefined, 'unknown'],
    ['sqs', false, 'pass'],
    ['sqs-fifo', true, 'pass'],
    [undefined, true, 'unknown'],
  ] as const;
  const title = ([transport, keyed, answer]: (typeof destinations)[number]): string =>
    `transport ${said(transport)}, keyed ${said(keyed)}: ${answer}`;
  test.each(destinations.map((facts) => [title(facts), facts] as const))(
    '%s',
    (_, [transport, keyed, answer]) => {
      expect(findingOf(to(transport, keyed), 'order', 'destination d').answer).toBe(answer);
    },
  );
});
