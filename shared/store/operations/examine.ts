import type { DoctorResponse, Finding, Severity } from '../../operations/responses.ts';

/** What a check found, without the check's name. */
export type Found = Omit<Finding, 'check'>;

/** One check: its name in the findings, and what it finds. No finding means that nothing is wrong. */
export interface Check {
  readonly check: string;
  readonly look: () => Promise<readonly Found[]>;
}

const severities: readonly Severity[] = ['ok', 'unknown', 'warning', 'problem'];

/** The check of version and rights: what it lacks may keep others from looking. */
export const schemaCheckName = 'schema';

/** Runs every check by itself, so that one which may not look hides nothing. */
export async function examine(checks: readonly Check[]): Promise<DoctorResponse> {
  const findings: Finding[] = [];
  for (const { check, look } of checks) {
    const found = await look().catch((error: unknown) => [unknown(error, findings)]);
    const list = found.length > 0 ? found : [{ severity: 'ok' as const, what: 'nothing found', todo: '' }];
    findings.push(...list.map((finding) => ({ check, ...finding })));
  }
  const worst = Math.max(...findings.map(({ severity }) => severities.indexOf(severity)));
  const rank = ({ severity }: Finding): number => severities.indexOf(severity);
  return {
    command: 'doctor',
    worst: severities[worst] ?? 'ok',
    findings: [...findings].sort((a, b) => rank(b) - rank(a)),
  };
}

function unknown(error: unknown, before: readonly Finding[]): Found {
  const reason = error instanceof Error ? error.message : String(error);
  // Without the tables or a right it isn't known whether this user may look: the first finding says what to do.
  const lacking = before.some(({ check, severity }) => check === schemaCheckName && severity === 'problem');
  const todo = lacking
    ? `first do what is said of ${schemaCheckName}, then run the doctor again`
    : 'run the doctor as a user that may, or with "relaybox migrate --check" see what is missing';
  return { severity: 'unknown', what: `could not look: ${reason}`, todo };
}
