import { fileURLToPath } from 'node:url';
import { CfnOutput, Duration } from 'aws-cdk-lib';
import type * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as events from 'aws-cdk-lib/aws-events';
import * as targets from 'aws-cdk-lib/aws-events-targets';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { SqsEventSource } from 'aws-cdk-lib/aws-lambda-event-sources';
import * as logs from 'aws-cdk-lib/aws-logs';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { ExecutionRole, trace } from '../constructs/execution-role.ts';
import { handlerCode } from '../constructs/handler-code.ts';
import type { Relaybox } from '../constructs/relaybox.ts';

/** Where the example stands. */
export interface OrdersExampleProps {
  readonly relaybox: Relaybox;
  /** Whose SQL its functions speak. @default 'postgres' */
  readonly engine?: 'postgres' | 'sqlserver';
  /** The relaybox's own source: the example takes its own events. */
  readonly source: string;
  /** The bus behind the destination `events`. */
  readonly bus: events.IEventBus;
  /** The queue of the inbox with that source. */
  readonly inboxQueue: sqs.IQueue;
  /** What its functions share with Relaybox's: VPC, subnets, security groups. @default - outside of any VPC */
  readonly placement?: {
    readonly vpc?: ec2.IVpc;
    readonly vpcSubnets?: ec2.SubnetSelection;
    readonly securityGroups?: ec2.ISecurityGroup[];
  };
}

/**
 * The example application: an order is placed, an inbox handler writes its invoice, and a consumer straight from a
 * queue writes its email. Its own tables (examples/orders/tables.sql) are its business, and not made here.
 */
export class OrdersExample extends Construct {
  readonly placeOrder: lambda.Function;
  readonly emailQueue: sqs.Queue;

  constructor(scope: Construct, id: string, props: OrdersExampleProps) {
    super(scope, id);
    const { relaybox } = props;

    this.placeOrder = this.#function('PlaceOrder', 'place-order', 'Writes an order and its event', props);
    // The pool of `transactional` has two.
    relaybox.grantProduce(this.placeOrder, { maxConcurrency: 10, connections: 2 });
    relaybox.monitoring?.addFunction({ name: 'PlaceOrder', function: this.placeOrder });
    const url = this.placeOrder.addFunctionUrl({ authType: lambda.FunctionUrlAuthType.AWS_IAM });

    relaybox.addHandler('OrderPlaced', {
      messageType: 'order.placed',
      entry: example('invoice-on-order-placed', props.engine),
      timeout: Duration.seconds(30),
    });

    this.emailQueue = this.#emails(props);
    new events.Rule(this, 'OrderPlaced', {
      eventBus: props.bus,
      eventPattern: { detailType: ['order.placed'] },
      targets: [new targets.SqsQueue(props.inboxQueue), new targets.SqsQueue(this.emailQueue)],
    });

    new CfnOutput(this, 'PlaceOrderFunction', { value: this.placeOrder.functionName });
    new CfnOutput(this, 'PlaceOrderUrl', { value: url.url });
    new CfnOutput(this, 'InboxQueueUrl', { value: props.inboxQueue.queueUrl });
  }

  /** The second consumer of the same event, by `sqsConsumer`. */
  #emails(props: OrdersExampleProps): sqs.Queue {
    const secure = { encryption: sqs.QueueEncryption.SQS_MANAGED, enforceSSL: true };
    const deadLetterQueue = new sqs.Queue(this, 'EmailsDead', {
      ...secure,
      retentionPeriod: Duration.days(14),
    });
    const queue = new sqs.Queue(this, 'Emails', {
      ...secure,
      visibilityTimeout: Duration.minutes(3),
      deadLetterQueue: { queue: deadLetterQueue, maxReceiveCount: 5 },
    });
    const fn = this.#function('Email', 'email-on-order-placed', 'Writes the email of an order', props);
    fn.addEnvironment('RELAYBOX_INBOX_SOURCE', props.source);
    // `sqsConsumer` works on four messages at once, and has a connection more.
    props.relaybox.grantProduce(fn, { maxConcurrency: 2, connections: 5 });
    fn.addEventSource(new SqsEventSource(queue, { reportBatchItemFailures: true, maxConcurrency: 2 }));
    props.relaybox.monitoring?.addConsumer({ name: 'Email', function: fn, queue, deadLetterQueue });
    return queue;
  }

  #function(id: string, file: string, description: string, props: OrdersExampleProps): lambda.Function {
    const logGroup = new logs.LogGroup(this, `${id}Logs`, { retention: logs.RetentionDays.ONE_MONTH });
    const fn = new lambda.Function(this, id, {
      description: `Relaybox's example: ${description}`,
      code: handlerCode(example(file, props.engine)),
      handler: 'index.handler',
      runtime: lambda.Runtime.NODEJS_24_X,
      architecture: lambda.Architecture.ARM_64,
      memorySize: 256,
      timeout: Duration.seconds(30),
      logGroup,
      role: new ExecutionRole(this, `${id}Role`, {
        logGroup,
        inVpc: props.placement?.vpc !== undefined,
        tracing: true,
      }),
      // Its metrics stand beside Relaybox's own on the dashboard.
      environment: { POWERTOOLS_SERVICE_NAME: props.relaybox.serviceName },
      ...props.placement,
    });
    trace(fn, lambda.Tracing.ACTIVE);
    return fn;
  }
}

function example(file: string, engine: OrdersExampleProps['engine'] = 'postgres'): string {
  const folder = engine === 'sqlserver' ? 'sqlserver/' : '';
  return fileURLToPath(new URL(`../../examples/orders/${folder}${file}.ts`, import.meta.url));
}
