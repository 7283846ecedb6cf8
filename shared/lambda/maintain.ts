import { Deadline } from '../delivery/deadline.ts';
import type { Logger } from '../delivery/telemetry.ts';
import { RelayboxError } from '../message/errors.ts';
import { type MaintainReport, maintain } from '../operations/maintain.ts';
import { operate } from '../operations/operate.ts';
import type { Operations } from '../operations/operations.ts';
import type { OperatorResponse } from '../operations/responses.ts';
import { boxesToWake } from '../operations/wakes.ts';
import { wakeTypes } from '../outbox/wake.ts';
import type { AdminEngine } from './admin.ts';
import { readSettings, type Settings } from './config.ts';
import { once, shared } from './connections.ts';
import { type InvocationContext, invocation } from './invocation.ts';
import { inboxWakers, relayWaker } from './wake.ts';

/** Options of a maintain function; everything else comes from its environment. */
export interface MaintainFunctionOptions {
  /** Settings other than the environment's. */
  readonly settings?: Settings;
}

/** An operator's request, with a `command`, is answered; any other event is a cycle of maintenance. */
export type MaintainFunction = (
  event: unknown,
  context?: InvocationContext,
) => Promise<MaintainReport | OperatorResponse>;

/** Parts of a cycle failed; the others were done. Thrown at its end, so that the function's error alarm sees it. */
export class MaintenanceIncomplete extends RelayboxError {
  readonly code = 'RELAYBOX_MAINTENANCE_INCOMPLETE';
  readonly report: MaintainReport;

  constructor(report: MaintainReport, failed: readonly (readonly [string, string])[]) {
    super(`maintenance is incomplete: ${failed.map(([part, reason]) => `${part} (${reason})`).join(', ')}`);
    this.report = report;
  }
}

/** One for the work, one for leases, one for a status beside them. */
const POOL = 3;
/** Kept for the metrics and the answer. */
const EPILOGUE_MS = 1_000;

/** Binds the maintain function to an engine. */
export function maintainFor(engine: AdminEngine): (options?: MaintainFunctionOptions) => MaintainFunction {
  return (options = {}) => {
    const start = once(async () => {
      const settings = options.settings ?? readSettings();
      const admin = shared(engine, settings, { max: POOL });
      return { settings, admin, checked: once(() => admin.check()) };
    });

    return (event, context) =>
      invocation(context, async ({ deadline, telemetry }) => {
        const { settings, admin, checked } = await start();
        // An operator may ask a database that is not as it should be: `doctor` says what is wrong with it.
        if (isRequest(event)) return await decide(admin.operations, event, settings, telemetry.logger);
        await checked();
        const report = await maintain(admin.maintenance, {
          deadline: Deadline.in(deadline.remainingMs() - EPILOGUE_MS),
          telemetry,
          outboxDays: settings.retention.outboxDays,
          inboxDays: settings.retention.inboxDays,
          receiptsDays: settings.retention.receiptsDays,
        });
        const failed = Object.entries(report.failed);
        if (failed.length > 0) throw new MaintenanceIncomplete(report, failed);
        return report;
      });
  };
}

/** Answers an operator, and wakes those who have work by it. Which types have, only their handlers know: all are told. */
async function decide(
  operations: Operations,
  request: unknown,
  settings: Settings,
  logger: Logger,
): Promise<OperatorResponse> {
  const relay = relayWaker(settings, logger);
  const handlers = inboxWakers(settings, logger);
  const answer = await operate(operations, request);
  const boxes = boxesToWake(answer);
  await Promise.all([
    boxes.has('outbox') ? relay?.wake() : undefined,
    boxes.has('inbox') ? wakeTypes(handlers, handlers.keys()) : undefined,
  ]);
  return answer;
}

function isRequest(event: unknown): boolean {
  return typeof event === 'object' && event !== null && 'command' in event;
}
