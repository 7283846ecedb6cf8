import { Annotations } from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import type { Network } from './network.ts';
import { environmentOf, POWERTOOLS } from './service-name.ts';

/** What is said of a function that produces, for the connection budget. */
export interface ProduceOptions {
  /** Invocations side by side, at most. @default - its reserved concurrency, where it has one */
  readonly maxConcurrency?: number;
  /** The size of one instance's pool of connections. @default - not known */
  readonly connections?: number;
}

/** A function with `grantProduce`. */
export interface Producer extends ProduceOptions {
  readonly function: lambda.IFunction;
}

/**
 * Sets a function's variables; its name for Powertools only where it has none. An imported function's can't be set from
 * here: then it is said which, and how.
 */
export function configure(fn: lambda.IFunction, environment: Readonly<Record<string, string>>): void {
  if (fn instanceof lambda.Function) {
    const own = environmentOf(fn);
    for (const [name, value] of Object.entries(environment)) {
      if (POWERTOOLS.some((each) => each === name) && own[name] !== undefined) continue;
      fn.addEnvironment(name, value);
    }
    return;
  }
  const settings = Object.entries(environment).map(([name, value]) => `  ${name}=${readable(fn, value)}`);
  Annotations.of(fn).addWarningV2(
    'relaybox:imported-function',
    [
      `${fn.node.path} is imported, so that its environment can't be set from here. Set these variables where the function is defined (POWERTOOLS_SERVICE_NAME where it has none):`,
      ...settings,
      `There, \`fn.addEnvironment(…)\` sets them, or relaybox.environmentOfProducers gives all of them to a function that is made in this app.`,
    ].join('\n'),
  );
}

/** False where a function was imported without its role: then it is said what the role needs. */
export function takesGrants(fn: lambda.IFunction, needed: readonly string[]): boolean {
  if (fn.role !== undefined) return true;
  Annotations.of(fn).addWarningV2(
    'relaybox:imported-role',
    [
      `${fn.node.path} is imported without its role, so that it can't be granted anything from here. Import it with \`role\`, or let its role do this:`,
      ...needed.map((permission) => `  ${readable(fn, permission)}`),
    ].join('\n'),
  );
  return false;
}

/** Lets a function reach the database, or says why that can't be done from here. */
export function connectToDatabase(fn: lambda.IFunction, network: Network): void {
  if (network.vpc === undefined) return;
  const said = (what: string) => Annotations.of(fn).addWarningV2('relaybox:no-way-to-database', what);
  if (!fn.isBoundToVpc) {
    said(
      fn instanceof lambda.Function
        ? `${fn.node.path} runs outside of a VPC, and the database is in ${network.vpc.node.path}: give the function that \`vpc\``
        : `${fn.node.path} is imported without its security group, so that the database's can't be opened to it: import it with \`securityGroup\`, or add a rule for the database's port by hand`,
    );
    return;
  }
  network.allowToDatabase(fn);
}

/** A value as it can be read: parts that only the deployment knows are named. */
function readable(fn: lambda.IFunction, value: string): string {
  const resolved: unknown = fn.stack.resolve(value);
  if (typeof resolved === 'string') return resolved;
  const { 'Fn::Join': join } = resolved as { 'Fn::Join'?: readonly [string, readonly unknown[]] };
  return (join?.[1] ?? [resolved]).map(named).join('');
}

function named(part: unknown): string {
  if (typeof part === 'string') return part;
  const { Ref, 'Fn::GetAtt': attribute } = part as { Ref?: string; 'Fn::GetAtt'?: readonly string[] };
  const name = Ref ?? attribute?.join('.');
  return name === undefined ? JSON.stringify(part) : `<${name}>`;
}
