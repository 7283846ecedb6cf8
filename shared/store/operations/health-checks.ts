import { isUnhandled, laneLabel } from '../../operations/maintain.ts';
import type { RequestOf } from '../../operations/operations.ts';
import type { HealthCheck, HealthResponse, StatusResponse } from '../../operations/responses.ts';
import type { Row } from './rows.ts';

/** Where the health answer gets its evidence. */
export interface HealthEvidence {
  /** Throws where something is missing, with what it is. */
  checkSchema(): Promise<{ readonly version: number }>;
  status(): Promise<StatusResponse>;
  /** Relays with the age of their last cycle (`worker`, `age`), the freshest first. */
  relayAges(): Promise<readonly Row[]>;
}

/** Ready or not, from what the database shows: not whether a process answers, but whether messages flow. */
export async function healthBy(
  evidence: HealthEvidence,
  request: RequestOf<'health'>,
): Promise<HealthResponse> {
  const checks = [
    await attempt('schema', () => schema(evidence)),
    await attempt('flow', () => flow(evidence, request.oldestDueSeconds)),
    await attempt('cycle', () => cycle(evidence, request.staleSeconds)),
  ];
  return { command: 'health', ready: checks.every(({ ok }) => ok), checks };
}

type Answer = Omit<HealthCheck, 'name'>;

async function attempt(name: string, look: () => Promise<Answer>): Promise<HealthCheck> {
  try {
    return { name, ...(await look()) };
  } catch (error) {
    return { name, ok: false, detail: error instanceof Error ? error.message : String(error) };
  }
}

async function schema(evidence: HealthEvidence): Promise<Answer> {
  const { version } = await evidence.checkSchema();
  return { ok: true, detail: `version ${version}, and the rights that go with it` };
}

/** A lane that a person has paused is no fault; one that a breaker holds open is one as soon as it is late. */
async function flow(evidence: HealthEvidence, oldestDueSeconds: number): Promise<Answer> {
  const { lanes } = await evidence.status();
  const late = lanes.filter(
    (lane) => lane.state !== 'paused' && (lane.oldestDueSeconds ?? 0) > oldestDueSeconds,
  );
  if (late.length === 0) return { ok: true, detail: `no due message is older than ${oldestDueSeconds} s` };
  const said = late.map((lane) => {
    const why = lane.state === 'open' ? ', unavailable' : isUnhandled(lane) ? ', no handler' : '';
    return `${laneLabel(lane.lane)}: ${lane.oldestDueSeconds} s${why}`;
  });
  return { ok: false, detail: `oldest due message: ${said.join('; ')}` };
}

async function cycle(evidence: HealthEvidence, staleSeconds: number): Promise<Answer> {
  const [freshest] = await evidence.relayAges();
  if (freshest === undefined) return { ok: false, detail: 'no relay has ever reported a successful cycle' };
  const age = freshest.number('age');
  return {
    ok: age <= staleSeconds,
    detail: `the last successful cycle, of ${freshest.text('worker')}, was ${age} s ago (limit ${staleSeconds} s)`,
  };
}
