import { type IResolvable, Stack, Token } from 'aws-cdk-lib';
import * as kms from 'aws-cdk-lib/aws-kms';
import type { IConstruct } from 'constructs';

const EVENTS = 'events.amazonaws.com';
/** What EventBridge needs of a key, for a bus of its own as for a queue behind one. */
const NEEDED = ['kms:GenerateDataKey', 'kms:Decrypt'];

/** The key with this ARN, where this app makes it. */
export function keyOf(scope: IConstruct, arn: string): kms.Key | undefined {
  return scope.node.root.node
    .findAll()
    .filter((construct) => construct instanceof kms.Key)
    .find((key) => key.keyArn === arn);
}

/** Whether a key's policy lets EventBridge use it. Undefined for a key whose policy is elsewhere. Conditions are not judged. */
export function allowsEvents(key: kms.IKey | undefined): boolean | undefined {
  const child = key?.node.defaultChild;
  if (key === undefined || !(child instanceof kms.CfnKey)) return undefined;
  const policy: unknown = Stack.of(key).resolve(child.keyPolicy as IResolvable);
  if (Token.isUnresolved(policy)) return undefined;
  const allowed = listOf(field(policy, 'Statement'))
    .filter((statement) => field(statement, 'Effect') === 'Allow')
    .filter((statement) => listOf(field(field(statement, 'Principal'), 'Service')).includes(EVENTS))
    .flatMap((statement) => listOf(field(statement, 'Action')));
  return NEEDED.every((action) => allowed.some((pattern) => covers(String(pattern), action)));
}

function covers(pattern: string, action: string): boolean {
  return pattern.endsWith('*') ? action.startsWith(pattern.slice(0, -1)) : pattern === action;
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
