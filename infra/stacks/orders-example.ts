import { fileURLToPath } from 'node:url';
import { CfnOutput, Duration } from 'aws-cdk-lib';
import type * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as events from 'aws-cdk-lib/aws-events';
import * as targets from 'aws-cdk-lib/aws-events-targets';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type * as sqs from 'aws-cdk-lib/aws-sqs';
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

  constructor(scope: Construct, id: string, props: OrdersExampleProps) {
    super(scope, id);
    const { relaybox } = props;

    this.placeOrder = this.#placeOrder(props);
    // The pool of `transactional` has two.
    relaybox.grantProduce(this.placeOrder, { maxConcurrency: 10, connections: 2 });
    relaybox.monitoring?.addFunction({ name: 'PlaceOrder', function: this.placeOrder });
    const url = this.placeOrder.addFunctionUrl({ authType: lambda.FunctionUrlAuthType.AWS_IAM });

    relaybox.addHandler('OrderPlaced', {
      messageType: 'order.placed',
      entry: example('invoice-on-order-placed', props.engine),
      timeout: Duration.seconds(30),
    });

    // The second consumer of the same event.
    const emails = relaybox.addConsumer('Email', {
      consumer: 'emails',
      source: props.source,
      entry: example('email-on-order-placed', props.engine),
    });
    new events.Rule(this, 'OrderPlaced', {
      eventBus: props.bus,
      eventPattern: { detailType: ['order.placed'] },
      targets: [new targets.SqsQueue(props.inboxQueue), new targets.SqsQueue(emails.queue)],
    });

    new CfnOutput(this, 'PlaceOrderFunction', { value: this.placeOrder.functionName });
    new CfnOutput(this, 'PlaceOrderUrl', { value: url.url });
    new CfnOutput(this, 'InboxQueueUrl', { value: props.inboxQueue.queueUrl });
  }

  #placeOrder(props: OrdersExampleProps): lambda.Function {
    const logGroup = new logs.LogGroup(this, 'PlaceOrderLogs', { retention: logs.RetentionDays.ONE_MONTH });
    const fn = new lambda.Function(this, 'PlaceOrder', {
      description: "Relaybox's example: writes an order and its event",
      code: handlerCode(example('place-order', props.engine)),
      handler: 'index.handler',
      runtime: lambda.Runtime.NODEJS_24_X,
      architecture: lambda.Architecture.ARM_64,
      memorySize: 256,
      timeout: Duration.seconds(30),
      logGroup,
      role: new ExecutionRole(this, 'PlaceOrderRole', {
        logGroup,
        inVpc: props.placement?.vpc !== undefined,
        tracing: true,
      }),
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
