import { Token } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as sqs from 'aws-cdk-lib/aws-sqs';
import type { EventSourceFacts } from '../checks/facts.ts';
import { queueFacts } from './queue-facts.ts';

/**
 * The queues that a function of the user's takes its events from, as `sqsConsumer` does: read from the event sources
 * that stand beneath it.
 */
export function ownEventSources(fn: lambda.IFunction): EventSourceFacts[] {
  return fn.node
    .findAll()
    .filter((child) => child instanceof lambda.CfnEventSourceMapping)
    .flatMap((mapping): EventSourceFacts[] => {
      const queue = queueOf(fn, mapping.eventSourceArn);
      // A stream, or a queue that nobody in this app has made or imported.
      if (queue === undefined) return [];
      return [
        {
          function: fn.node.path,
          queue: queueFacts(queue),
          batchingWindowSeconds: settled(mapping.maximumBatchingWindowInSeconds, 0),
          maxConcurrency: limitOf(mapping),
          wake: false,
          reportsFailures: reportsFailures(mapping),
        },
      ];
    });
}

function queueOf(fn: lambda.IFunction, arn: string | undefined): sqs.IQueue | undefined {
  if (arn === undefined) return undefined;
  return fn.node.root.node
    .findAll()
    .filter((construct) => construct instanceof sqs.QueueBase)
    .find((queue) => queue.queueArn === arn);
}

function reportsFailures({
  functionResponseTypes: types,
}: lambda.CfnEventSourceMapping): boolean | undefined {
  if (types === undefined) return false;
  return Token.isUnresolved(types) ? undefined : types.includes('ReportBatchItemFailures');
}

function limitOf({ scalingConfig }: lambda.CfnEventSourceMapping): EventSourceFacts['maxConcurrency'] {
  if (scalingConfig === undefined) return 'none';
  if (Token.isUnresolved(scalingConfig) || !('maximumConcurrency' in scalingConfig)) return undefined;
  return settled(scalingConfig.maximumConcurrency, 'none');
}

/** A number, or what its absence means; undefined for a token, which nobody can read yet. */
function settled<Otherwise>(value: number | undefined, otherwise: Otherwise): number | Otherwise | undefined {
  if (value === undefined) return otherwise;
  return Token.isUnresolved(value) ? undefined : value;
}
