import type { Operations } from './operations.ts';
import { parseRequest } from './parse.ts';
import type { OperatorResponse } from './responses.ts';

/**
 * Answers an operator's request, as it came in JSON. Answers are JSON too: ids and 64-bit numbers are strings,
 * instants ISO 8601 by the database's clock.
 *
 * @example
 * await operate(operations, { command: 'requeue', all: true, destination: 'orders', dryRun: true });
 * @throws {RequestRefused} where the request is not as it must be; nothing was done then
 */
export async function operate(operations: Operations, request: unknown): Promise<OperatorResponse> {
  const parsed = parseRequest(request);
  switch (parsed.command) {
    case 'status':
      return await operations.status(parsed);
    case 'failed':
      return await operations.failed(parsed);
    case 'show':
      return await operations.show(parsed);
    case 'requeue':
      return await operations.requeue(parsed);
    case 'discard':
      return await operations.discard(parsed);
    case 'pause':
      return await operations.pause(parsed);
    case 'resume':
      return await operations.resume(parsed);
    case 'purge':
      return await operations.purge(parsed);
    case 'doctor':
      return await operations.doctor(parsed);
    case 'health':
      return await operations.health(parsed);
  }
}
