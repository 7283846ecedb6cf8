import type { Answer, Finding } from './finding.ts';

/** The order in which one wants to read them. */
const ORDER: readonly Answer[] = ['fail', 'unknown', 'warning', 'accepted', 'pass'];

const MARKS: Readonly<Record<Answer, string>> = {
  fail: 'FAIL',
  unknown: 'UNKNOWN',
  warning: 'WARNING',
  accepted: 'ACCEPTED',
  pass: 'PASS',
};

/** All findings as one list, failures first. What passed is counted, and listed where `all` is set. */
export function report(findings: readonly Finding[], options: { readonly all?: boolean } = {}): string {
  const listed = ORDER.filter((answer) => answer !== 'pass' || options.all === true).flatMap((answer) =>
    findings.filter((finding) => finding.answer === answer),
  );
  return [summary(findings), ...listed.map(entry)].join('\n');
}

/** `Relaybox checked this deployment: 1 fail, 2 unknown, 12 pass`. */
export function summary(findings: readonly Finding[]): string {
  const counts = ORDER.map((answer) => {
    const number = findings.filter((finding) => finding.answer === answer).length;
    return number === 0 ? undefined : `${number} ${answer}`;
  }).filter((text) => text !== undefined);
  return `Relaybox checked this deployment: ${counts.length === 0 ? 'nothing to check' : counts.join(', ')}`;
}

/** One finding in up to three lines. */
export function entry(finding: Finding): string {
  const lines = [
    `  ${MARKS[finding.answer]} ${finding.check} · ${finding.subject}`,
    `    ${finding.message}.`,
  ];
  // What is accepted needs no fix any more.
  if (finding.fix !== undefined && finding.answer !== 'accepted') lines.push(`    Fix: ${finding.fix}.`);
  return lines.join('\n');
}
