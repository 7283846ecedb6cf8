import { Stack } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { Destination } from './destination.ts';
import type { Network } from './network.ts';
import type { Common } from './own-function.ts';
import type { RelayboxProps } from './relaybox-props.ts';

/** What all functions of a Relaybox have in common. */
export function commonOf(
  scope: Construct,
  props: RelayboxProps,
  { network, serviceName }: { readonly network: Network; readonly serviceName: string },
): Common {
  return {
    network,
    environment: {
      RELAYBOX_DATABASE: databaseSettings(scope, props, 'functions'),
      RELAYBOX_SOURCE: props.source,
      POWERTOOLS_SERVICE_NAME: serviceName,
      POWERTOOLS_METRICS_NAMESPACE: METRICS_NAMESPACE,
      ...tableSettings(props),
    },
    logRetention: props.logRetention ?? logs.RetentionDays.ONE_MONTH,
    tracing: props.tracing === false ? lambda.Tracing.DISABLED : lambda.Tracing.ACTIVE,
  };
}

/** Where alarms and dashboard look for metrics. */
export const METRICS_NAMESPACE = 'Relaybox';

/** `RELAYBOX_DATABASE` */
export function databaseSettings(
  scope: Construct,
  { database }: RelayboxProps,
  login: 'functions' | 'migration',
): string {
  return Stack.of(scope).toJsonString(database.settings(login));
}

/** A JSON object with something of each destination, by name. */
export function ofDestinations(
  scope: Construct,
  { destinations = {} }: RelayboxProps,
  what: (destination: Destination) => object,
): string {
  const entries = Object.entries(destinations).map(([name, destination]) => [name, what(destination)]);
  return Stack.of(scope).toJsonString(Object.fromEntries(entries));
}

/** The tables' variables; what is left out keeps the engine's default. */
export function tableSettings({ tables = {} }: RelayboxProps): Record<string, string> {
  return {
    ...(tables.schema && { RELAYBOX_SCHEMA: tables.schema }),
    ...(tables.outboxTable && { RELAYBOX_OUTBOX_TABLE: tables.outboxTable }),
    ...(tables.inboxTable && { RELAYBOX_INBOX_TABLE: tables.inboxTable }),
  };
}
