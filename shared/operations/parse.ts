import { defaults } from '../delivery/defaults.ts';
import { RequestRefused } from './errors.ts';
import { Fields } from './fields.ts';
import type { Box, Command, LaneName, OperatorRequest, Selection } from './requests.ts';

/** Fields of one call are bounded, so that each call ends well within a function's time. */
const limits = { page: 1000, ids: 1000, purge: 10_000, waitSeconds: 600, days: 36_500, seconds: 31_536_000 };
/** A relay that was killed frees its buckets after its lease: wait a little longer than that. */
const waitSeconds = defaults.bucketLeaseSeconds + 5;

const parsers: {
  readonly [Name in Command]: (fields: Fields) => Extract<OperatorRequest, { command: Name }>;
} = {
  status: () => ({ command: 'status' }),
  failed: (fields) => {
    const lane = optionalLane(fields);
    const box: Box = lane?.box ?? fields.oneOf('box', ['outbox', 'inbox']);
    if (lane !== null && fields.has('box')) fields.oneOf('box', [lane.box]);
    return { command: 'failed', box, lane, ...page(fields, 100) };
  },
  show: (fields) => ({ command: 'show', by: identity(fields), payload: fields.flag('payload') }),
  requeue: (fields) => ({
    command: 'requeue',
    select: selection(fields),
    dryRun: fields.flag('dryRun'),
    waitSeconds: fields.integer('waitSeconds', 0, limits.waitSeconds, waitSeconds),
  }),
  discard: (fields) => ({
    command: 'discard',
    select: selection(fields),
    reason: fields.text('reason', 1000),
    by: fields.text('by', 200),
    dryRun: fields.flag('dryRun'),
    waitSeconds: fields.integer('waitSeconds', 0, limits.waitSeconds, waitSeconds),
  }),
  pause: (fields) => ({
    command: 'pause',
    lane: lane(fields),
    by: fields.text('by', 200),
    reason: fields.text('reason', 1000),
    seconds: fields.optionalInteger('seconds', 1, limits.seconds),
  }),
  resume: (fields) => ({ command: 'resume', lane: lane(fields) }),
  purge: (fields) => {
    const from = fields.oneOf('from', ['outbox', 'inbox', 'receipts']);
    const days = from === 'outbox' ? defaults.outboxRetentionDays : defaults.inboxRetentionDays;
    return {
      command: 'purge',
      from,
      olderThanDays: fields.integer('olderThanDays', 0, limits.days, days),
      dryRun: fields.flag('dryRun'),
      limit: fields.integer('limit', 1, limits.purge, limits.purge),
    };
  },
  doctor: () => ({ command: 'doctor' }),
  health: (fields) => ({
    command: 'health',
    oldestDueSeconds: fields.integer('oldestDueSeconds', 1, limits.seconds, 300),
    staleSeconds: fields.integer('staleSeconds', 1, limits.seconds, defaults.healthStaleSeconds),
  }),
};

/** The commands there are, in the order a person meets them. */
export const commands = Object.keys(parsers) as readonly Command[];

/**
 * Checks a request that came as JSON.
 * @throws {RequestRefused} naming the command or field at fault, and what it may be
 */
export function parseRequest(request: unknown): OperatorRequest {
  if (typeof request !== 'object' || request === null || Array.isArray(request)) {
    throw new RequestRefused(`a request must be an object with a command, one of ${commands.join(', ')}`);
  }
  const values = request as Readonly<Record<string, unknown>>;
  const command = commands.find((each) => each === values['command']);
  if (command === undefined) {
    const given = JSON.stringify(values['command'])?.slice(0, 60) ?? 'none';
    throw new RequestRefused(`unknown command ${given}; it must be one of ${commands.join(', ')}`);
  }
  const fields = new Fields(command, values);
  const parsed = parsers[command](fields);
  fields.done();
  return parsed;
}

function optionalLane(fields: Fields): LaneName | null {
  const destination = fields.optionalText('destination', 300);
  const messageType = fields.optionalText('messageType', 200);
  const consumer = fields.optionalText('consumer', 200, 0);
  if (destination !== null && messageType !== null) {
    throw fields.refuse('lane', 'a destination (outbox) or a messageType (inbox), not both');
  }
  if (consumer !== null && messageType === null) {
    throw fields.refuse('consumer', 'given together with messageType');
  }
  if (destination !== null) return { box: 'outbox', destination };
  if (messageType !== null) return { box: 'inbox', consumer: consumer ?? '', messageType };
  return null;
}

function lane(fields: Fields): LaneName {
  const given = optionalLane(fields);
  if (given === null) throw fields.refuse('lane', 'named: destination (outbox) or messageType (inbox)');
  return given;
}

function page(fields: Fields, limit: number): { limit: number; after: string | null } {
  return { limit: fields.integer('limit', 1, limits.page, limit), after: fields.optionalText('after', 4000) };
}

function selection(fields: Fields): Selection {
  const all = fields.flag('all');
  const ids = fields.has('ids') ? fields.uuids('ids', limits.ids) : null;
  if ((ids === null) === !all) throw fields.refuse('ids', 'given, or else all with a lane');
  const named = optionalLane(fields);
  const { limit, after } = page(fields, 500);
  if (ids !== null) {
    if (named !== null || after !== null)
      throw fields.refuse('ids', 'given without a lane and without after');
    return { ids };
  }
  if (named === null)
    throw fields.refuse('lane', 'named with all: destination (outbox) or messageType (inbox)');
  return { lane: named, limit, after };
}

function identity(fields: Fields): Extract<OperatorRequest, { command: 'show' }>['by'] {
  const id = fields.has('id') ? fields.uuid('id') : null;
  const source = fields.optionalText('source', 200);
  const externalMessageId = fields.optionalText('externalMessageId', 300);
  const consumer = fields.optionalText('consumer', 200, 0);
  if (id !== null) {
    if (source !== null || externalMessageId !== null) throw fields.refuse('id', 'given without source');
    return { id };
  }
  if (source === null || externalMessageId === null) {
    throw fields.refuse('id', 'given, or else source and externalMessageId');
  }
  return { source, externalMessageId, consumer };
}
