import { Annotations, CfnOutput, Duration, Stack, type StackProps } from 'aws-cdk-lib';
import * as events from 'aws-cdk-lib/aws-events';
import * as sns from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { Destination } from '../constructs/destination.ts';
import type { InboxProps } from '../constructs/ingest.ts';
import { Relaybox } from '../constructs/relaybox.ts';
import type { AppSettings, DestinationSettings } from '../context.ts';
import { appDatabase } from './database.ts';
import { EmulatedBus } from './emulated-bus.ts';
import { AppNetwork } from './network.ts';
import { OrdersExample } from './orders-example.ts';

/** The ready app's stack. */
export interface RelayboxStackProps extends StackProps {
  readonly settings: AppSettings;
}

/** Relaybox with the database, network, bus and alarm topic that it is told to make, on those that are there. */
export class RelayboxStack extends Stack {
  readonly relaybox: Relaybox;

  constructor(scope: Construct, id: string, props: RelayboxStackProps) {
    super(scope, id, {
      description: 'Relaybox: the transactional outbox and inbox for AWS Lambda',
      ...props,
    });
    const { settings } = props;
    // Emulators run functions beside themselves, and have no network to put them in.
    const network = settings.emulator ? undefined : new AppNetwork(this, 'Network', settings.network);
    const bus = this.#createBus();
    this.relaybox = new Relaybox(this, 'Relaybox', {
      source: settings.source,
      database: appDatabase(this, settings, network?.vpc),
      destinations: { events: ownBus(bus, settings), ...this.#destinations(settings) },
      inboxes: this.#inboxes(settings),
      alarmTopic: this.#alarmTopic(settings),
      ...(settings.schema !== undefined && { tables: { schema: settings.schema } }),
      relay: {
        mode: settings.mode,
        sweepInterval: Duration.minutes(settings.sweepMinutes),
        memorySize: settings.relayMemory,
        afterSuccess: settings.afterSuccess,
      },
      maintenance: { interval: Duration.minutes(settings.sweepMinutes) },
      // RDS makes no database on SQL Server: somebody has to, before the tables can be made in it.
      migration: { atDeploy: settings.engine === 'postgres' || settings.database.kind === 'existing' },
      monitoring: { expressions: !settings.emulator },
      tracing: !settings.emulator,
      acceptedFindings: [...settings.acceptedFindings],
      ...(network && { vpcSubnets: network.subnets }),
      ...(settings.network.egress === 'provided' && { egress: 'provided' as const }),
    });
    if (network !== undefined) {
      network.letOut(this.relaybox.network.securityGroups);
      // It runs while the deployment does, and reads its secret through an endpoint or NAT.
      this.relaybox.migration.trigger?.node.addDependency(network);
    }
    if (settings.example) this.#example(settings, bus);
    new CfnOutput(this, 'EventBus', { value: bus.eventBusName });
    new CfnOutput(this, 'MaintainFunction', {
      value: this.relaybox.maintain.function.functionName,
      description: 'For relaybox … --function',
    });
  }

  #createBus(): events.IEventBus {
    const description = 'What this application says to others';
    // The CDK's own classes don't fit its interfaces where optional properties are exact.
    return new events.EventBus(this, 'Events', { description }) as events.IEventBus;
  }

  #example(settings: AppSettings, bus: events.IEventBus): void {
    const inbox = this.relaybox.ingests.find(({ source }) => source === settings.source);
    if (inbox === undefined) return;
    new OrdersExample(this, 'Example', {
      engine: settings.engine,
      relaybox: this.relaybox,
      source: settings.source,
      bus,
      inboxQueue: inbox.queue,
      placement: this.relaybox.network.placement,
    });
  }

  #destinations({ destinations }: AppSettings): Record<string, Destination> {
    return Object.fromEntries(
      Object.entries(destinations).map(([name, settings]) => [name, this.#destination(name, settings)]),
    );
  }

  #destination(name: string, { arn, keyed, queueFacts }: DestinationSettings): Destination {
    const options = keyed === undefined ? {} : { keyed };
    const id = `Destination-${name}`;
    return arn.includes(':sqs:')
      ? Destination.queue(sqs.Queue.fromQueueArn(this, id, arn), {
          ...options,
          ...(queueFacts && { queueFacts }),
        })
      : Destination.eventBus(events.EventBus.fromEventBusArn(this, id, arn), options);
  }

  /** The example takes its own events. */
  #inboxes({ inboxes, example, source }: AppSettings): InboxProps[] {
    const given = inboxes.map(({ queueArn, consumer, queueFacts, ...inbox }) => ({
      ...inbox,
      ...(queueFacts && { queueFacts }),
      ...(consumer !== undefined && { consumer }),
      ...(queueArn !== undefined && {
        queue: sqs.Queue.fromQueueArn(this, `Inbox-${inbox.source}-${consumer ?? ''}`, queueArn),
      }),
    }));
    const own = example && !given.some((inbox) => inbox.source === source);
    return own ? [...given, { source }] : given;
  }

  #alarmTopic({ alarmTopicArn, alarmEmail, emulator }: AppSettings): sns.ITopic {
    const topic =
      alarmTopicArn === undefined
        ? new sns.Topic(this, 'Alarms', { enforceSSL: true })
        : sns.Topic.fromTopicArn(this, 'Alarms', alarmTopicArn);
    if (alarmEmail !== undefined) topic.addSubscription(new EmailSubscription(alarmEmail));
    else if (alarmTopicArn === undefined && !emulator) {
      Annotations.of(this).addWarningV2(
        'relaybox:no-alarm-subscriber',
        'Alarms ring in a topic that nobody is subscribed to: say -c relaybox:alarmEmail=…, or -c relaybox:alarmTopicArn=… of a topic that somebody reads',
      );
    }
    return topic;
  }
}

/** The bus that the app makes. Its messages have no partition keys, since it keeps no order. */
function ownBus(bus: events.IEventBus, { emulator }: AppSettings): Destination {
  const options = { keyed: false };
  return emulator ? new EmulatedBus(bus, options) : Destination.eventBus(bus, options);
}
