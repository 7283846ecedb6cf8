import { Annotations } from 'aws-cdk-lib';
import { checkDeployment, report } from '../checks/index.ts';
import { deploymentFacts } from './deployment-facts.ts';
import type { Relaybox } from './relaybox.ts';
import type { RelayboxProps } from './relaybox-props.ts';

/**
 * Checks the deployment when all of it is known. A finding that is a fault fails the synth, with all findings in one
 * list; where there are only open questions and warnings, that list is a warning.
 */
export function validateDeployment(relaybox: Relaybox, props: RelayboxProps): string[] {
  const findings = checkDeployment(deploymentFacts(relaybox, props), props.acceptedFindings ?? []);
  if (findings.some(({ answer }) => answer === 'fail')) return [report(findings)];
  if (findings.some(({ answer }) => answer === 'unknown' || answer === 'warning')) {
    Annotations.of(relaybox).addWarningV2('relaybox:checks', report(findings));
  }
  return [];
}

/** Alarms without a topic change their colour, and wait for somebody to look. */
export function sayThatNobodyIsTold(relaybox: Relaybox): void {
  Annotations.of(relaybox).addWarningV2(
    'relaybox:no-alarm-topic',
    `${relaybox.node.path} has alarms and no alarmTopic: when one rings, nobody is told. Set alarmTopic, or, where somebody watches them another way, say so with Annotations.of(relaybox).acknowledgeWarning('relaybox:no-alarm-topic', '…')`,
  );
}
