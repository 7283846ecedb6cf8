import { Duration } from 'aws-cdk-lib';
import { Metric, Stats } from 'aws-cdk-lib/aws-cloudwatch';
import { Monitoring } from '../monitoring/monitoring.ts';
import type {
  ConsumerPart,
  DestinationPart,
  HandlerPart,
  IngestPart,
  MonitoringParts,
} from '../monitoring/parts.ts';
import type { Consumer } from './consumer.ts';
import type { Database } from './database.ts';
import type { Handler } from './handler.ts';
import type { Ingest } from './ingest.ts';
import type { Relaybox } from './relaybox.ts';
import type { RelayboxProps } from './relaybox-props.ts';

/** The alarms and the dashboard of a Relaybox; handlers are added as they come. */
export function createMonitoring(relaybox: Relaybox, props: RelayboxProps): Monitoring {
  const { relay, maintain } = relaybox;
  const { dashboard, expressions, runbookUrl } = props.monitoring ?? {};
  const parts: MonitoringParts = {
    service: relaybox.serviceName,
    relay: { name: 'Relay', function: relay.function, timeout: relay.timeout, every: relay.sweep.interval },
    wakeQueue: relay.wakeQueue.queue,
    maintain: {
      name: 'Maintain',
      function: maintain.function,
      timeout: maintain.timeout,
      every: maintain.sweep.interval,
    },
    destinations: Object.entries(props.destinations ?? {}).map(
      ([name, { queue, eventBus }]): DestinationPart => ({
        name,
        ...(queue && { queue }),
        ...(eventBus && { eventBus }),
      }),
    ),
    ingests: relaybox.ingests.map(ingestPart),
    database: databasePart(props.database),
    ...(props.alarmTopic && { alarmTopic: props.alarmTopic }),
    ...(dashboard !== undefined && { dashboard }),
    ...(expressions !== undefined && { expressions }),
    ...(runbookUrl !== undefined && { runbookUrl }),
  };
  return new Monitoring(relaybox, 'Monitoring', parts);
}

/** A handler as monitoring sees it. */
export function handlerPart(handler: Handler): HandlerPart {
  const { messageType, consumer, timeout, wakeQueue } = handler;
  return {
    name: `Handler ${consumer ? `${consumer} ` : ''}${messageType}`,
    function: handler.function,
    timeout,
    messageType,
    consumer,
    wakeQueue: wakeQueue.queue,
  };
}

/** A consumer as monitoring sees it. */
export function consumerPart(consumer: Consumer): ConsumerPart {
  const { timeout, queue, deadLetterQueue } = consumer;
  return {
    name: `Consumer ${consumer.node.id}`,
    function: consumer.function,
    timeout,
    queue,
    ...(deadLetterQueue && { deadLetterQueue }),
  };
}

function ingestPart(ingest: Ingest): IngestPart {
  const { source, consumer, timeout, queue, deadLetterQueue } = ingest;
  return {
    name: `Ingest ${source}${consumer ? ` ${consumer}` : ''}`,
    function: ingest.function,
    timeout,
    source,
    queue,
    ...(deadLetterQueue && { deadLetterQueue }),
  };
}

function databasePart({
  metricDimension,
  maxConnections,
}: Database): NonNullable<MonitoringParts['database']> {
  return {
    ...(metricDimension && {
      connections: new Metric({
        namespace: 'AWS/RDS',
        metricName: 'DatabaseConnections',
        dimensionsMap: metricDimension,
        statistic: Stats.MAXIMUM,
        period: Duration.minutes(1),
      }),
    }),
    ...(maxConnections !== undefined && { maxConnections }),
  };
}
