import {
  type CheckName,
  checkDeployment,
  type DeploymentFacts,
  entry,
  type Finding,
} from '../../infra/checks/index.ts';

/** The one finding that a check has on a subject. */
export function findingOf(facts: DeploymentFacts, check: CheckName, subject: string): Finding {
  const found = checkDeployment(facts).filter((each) => each.check === check && each.subject === subject);
  if (found.length !== 1) throw new Error(`${found.length} findings of ${check} on ${subject}`);
  return found[0] as Finding;
}

/** That finding as a person reads it. */
export function messageOf(facts: DeploymentFacts, check: CheckName, subject: string): string {
  return entry(findingOf(facts, check, subject));
}
