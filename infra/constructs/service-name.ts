import {
  Annotations,
  DefaultTokenResolver,
  type IResolvable,
  type IResolveContext,
  StringConcat,
  Tokenization,
} from 'aws-cdk-lib';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import { METRICS_NAMESPACE } from './common.ts';

/** Powertools' variables: a function's name in its logs and metrics. Set by the application, they are the application's. */
export const POWERTOOLS = ['POWERTOOLS_SERVICE_NAME', 'POWERTOOLS_METRICS_NAMESPACE'] as const;

/** The variables that a function has so far. Their values are as they were given: tokens stay tokens. */
export function environmentOf(fn: lambda.Function): Readonly<Record<string, unknown>> {
  const resource = fn.node.defaultChild;
  if (!(resource instanceof lambda.CfnFunction)) return {};
  const environment = Tokenization.resolve(resource.environment, {
    scope: fn,
    resolver: new Shallow(new StringConcat()),
    preparing: false,
  }) as { readonly variables?: Readonly<Record<string, unknown>> } | undefined;
  return environment?.variables ?? {};
}

/** Opens a token and not what is in it: a lazy value that is asked too early keeps what it then said. */
class Shallow extends DefaultTokenResolver {
  override resolveToken(token: IResolvable, context: IResolveContext): unknown {
    return token.resolve(context);
  }
}

/** Alarms and dashboard find metrics by these names: of a worker that has others they see nothing, and somebody should know. */
export function sayOtherNames(fn: lambda.Function, serviceName: string): void {
  const set = environmentOf(fn);
  const others = [serviceName, METRICS_NAMESPACE].flatMap((ours, index) => {
    const name = POWERTOOLS[index] ?? '';
    return set[name] === undefined || set[name] === ours
      ? []
      : [`${name} is ${String(set[name])}, not ${ours}`];
  });
  if (others.length === 0) return;
  Annotations.of(fn).addWarningV2(
    'relaybox:other-service-name',
    `${fn.node.path}: ${others.join(', and ')}, so that alarms and dashboard don't see its metrics (retries, lost leases, loops). Give the name to your own Logger and Metrics in code instead, or to Relaybox as \`serviceName\``,
  );
}
