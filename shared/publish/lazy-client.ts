import type { SQSClient } from '@aws-sdk/client-sqs';

/** One for each endpoint and process: every client keeps connections of its own. */
const clients = new Map<string | undefined, Promise<SQSClient>>();

/**
 * The process's SQS client for an endpoint, undefined for AWS's own. The SDK is loaded by the first call and not with
 * this module: a function that never makes one pays nothing for it at its start.
 */
export function lazySqsClient(endpoint: string | undefined): Promise<SQSClient> {
  const loading =
    clients.get(endpoint) ?? import('./sqs.ts').then(({ sqsClient }) => sqsClient({ endpoint }));
  // Whoever sends sees the error; nobody may be there yet.
  loading.catch(() => clients.delete(endpoint));
  clients.set(endpoint, loading);
  return loading;
}
