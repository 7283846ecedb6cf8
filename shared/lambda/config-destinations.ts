import type { OnFailedKey } from '../store/outbox-store.ts';
import type { EnvironmentReader, Fields } from './environment.ts';

/** A logical destination's queue or bus. */
export type DestinationSettings = SqsDestinationSettings | EventBridgeDestinationSettings;

/** An SQS queue, standard or FIFO. */
export interface SqsDestinationSettings {
  readonly type: 'sqs';
  readonly url: string;
  readonly fifo: boolean;
  /** Where it differs from the relay's. */
  readonly onFailedKey?: OnFailedKey;
}

/** An EventBridge bus with rules. */
export interface EventBridgeDestinationSettings {
  readonly type: 'eventbridge';
  /** Name or ARN of the bus. */
  readonly bus: string;
  /** Where it differs from the relay's. */
  readonly onFailedKey?: OnFailedKey;
}

const VARIABLE = 'RELAYBOX_DESTINATIONS';

/** Reads the mapping of destination names; empty where there is none. */
export function readDestinations(reader: EnvironmentReader): Record<string, DestinationSettings> {
  const all = reader.object(VARIABLE);
  if (all === undefined) return {};
  const destinations: Record<string, DestinationSettings> = {};
  for (const [name, value] of Object.entries(all.values)) {
    const fields = reader.fields(`${VARIABLE}.${name}`, value);
    const destination = fields && readDestination(reader, fields);
    if (destination) destinations[name] = destination;
  }
  return destinations;
}

function readDestination(reader: EnvironmentReader, fields: Fields): DestinationSettings | undefined {
  const onFailedKey = reader.choiceField(fields, 'onFailedKey', ['block', 'skip']);
  const common = onFailedKey === undefined ? {} : { onFailedKey };
  switch (fields.values['type']) {
    case 'sqs': {
      reader.only(fields, ['type', 'url', 'fifo', 'onFailedKey']);
      const url = required(reader, fields, 'url', "the queue's URL");
      const fifo = reader.booleanField(fields, 'fifo');
      // AWS demands this ending of every FIFO queue, and allows it to no other.
      return url === undefined
        ? undefined
        : { type: 'sqs', url, fifo: fifo ?? url.endsWith('.fifo'), ...common };
    }
    case 'eventbridge': {
      reader.only(fields, ['type', 'bus', 'onFailedKey']);
      const bus = required(reader, fields, 'bus', "the bus's name or ARN");
      return bus === undefined ? undefined : { type: 'eventbridge', bus, ...common };
    }
    default:
      return reader.problem(`${fields.path}.type`, 'sqs or eventbridge');
  }
}

function required(reader: EnvironmentReader, fields: Fields, name: string, must: string): string | undefined {
  if (fields.values[name] === undefined) return reader.problem(`${fields.path}.${name}`, must);
  return reader.textField(fields, name);
}
