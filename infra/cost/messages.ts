import type { CostPart } from './idle.ts';
import { prices } from './prices.ts';

/** How messages travel. */
export interface Traffic {
  readonly transport: 'eventbridge' | 'sqs';
  /** Messages that go together in one commit, one batch and one invocation: 1 is the dearest, 10 the broker's most. */
  readonly together: number;
}

const MILLION = 1e6;
const LOG_BYTES_PER_RUN = 2_000;
/** A wake is sent, received and deleted. */
const REQUESTS_OF_WAKE = 3;

/** What a million messages under 64 KB cost from the outbox to their handler, without what the handler does by itself. */
export function messagesCost({ transport, together }: Traffic): CostPart[] {
  const batches = MILLION / together;
  const requests = (number: number) => number * prices.sqsRequest.dollars;
  const each = together === 1 ? 'each alone' : `${together} together`;
  return [
    transport === 'eventbridge'
      ? {
          name: 'Publishing to EventBridge',
          how: 'by message, and its delivery to the inbox’s queue',
          dollars: MILLION * prices.eventBridgeEvent.dollars + requests(MILLION),
        }
      : { name: 'Publishing to SQS', how: each, dollars: requests(batches) },
    { name: 'Wakes of relay and handler', how: each, dollars: 2 * REQUESTS_OF_WAKE * requests(batches) },
    { name: 'Receiving by ingest', how: `${each}, received and deleted`, dollars: 2 * requests(batches) },
    { name: 'Lambda: relay', how: '512 MB, 100 ms', dollars: batches * run(0.5, 0.1) },
    { name: 'Lambda: ingest', how: '256 MB, 50 ms', dollars: batches * run(0.25, 0.05) },
    { name: 'Lambda: handler', how: '512 MB, 100 ms', dollars: batches * run(0.5, 0.1) },
    {
      name: 'Logs',
      how: `3 runs, ${LOG_BYTES_PER_RUN / 1000} KB each`,
      dollars: ((3 * batches * LOG_BYTES_PER_RUN) / 1e9) * prices.logsGb.dollars,
    },
  ];
}

function run(gb: number, seconds: number): number {
  return prices.lambdaRequest.dollars + gb * seconds * prices.lambdaGbSecond.dollars;
}
