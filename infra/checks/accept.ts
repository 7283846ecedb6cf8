import type { AcceptedFinding, Finding } from './finding.ts';

/** Findings that somebody answers for no longer fail the synth; an acceptance that meets nothing is said, lest it hide a later finding. */
export function accept(findings: readonly Finding[], accepted: readonly AcceptedFinding[]): Finding[] {
  const used = new Set<AcceptedFinding>();
  const result = findings.map((finding): Finding => {
    const by = finding.answer === 'pass' ? undefined : accepted.find((each) => covers(each, finding));
    if (by === undefined) return finding;
    used.add(by);
    return { ...finding, answer: 'accepted', message: `${finding.message}. Accepted: ${by.reason}` };
  });
  const unused = accepted.filter((each) => !used.has(each)).map(stale);
  return [...result, ...unused];
}

function covers({ check, subject }: AcceptedFinding, finding: Finding): boolean {
  return check === finding.check && (subject === undefined || subject === finding.subject);
}

function stale({ check, subject, reason }: AcceptedFinding): Finding {
  return {
    check,
    answer: 'warning',
    subject: subject ?? 'every subject',
    message: `Nothing was found that could be accepted (reason given: ${reason})`,
    fix: 'take the acceptance out, lest it hide a later finding',
  };
}
