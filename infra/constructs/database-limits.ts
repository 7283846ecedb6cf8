import * as rds from 'aws-cdk-lib/aws-rds';
import { Engine } from './engine.ts';

const GIB = 2 ** 30;
/** PostgreSQL on RDS and Aurora: LEAST({DBInstanceClassMemory/9531392}, 5000). */
const BYTES_PER_CONNECTION = 9_531_392;
const MOST = 5_000;
/** Of an instance's memory the operating system and the agents take a part before the formula applies; more of a small one. */
const LEFT_FOR_DATABASE = 0.75;
/** SQL Server's default, `user connections` 0. */
const SQL_SERVER = 32_767;
/** Aurora caps it so while the least capacity is 0 or 0.5. */
const MOST_OF_A_SMALL_SERVERLESS = 2_000;
const GIB_PER_ACU = 2;

/** Memory in GiB of the size `large`, by family; the other sizes double or halve it. */
const LARGE: Readonly<Record<string, number>> = { t: 8, m: 8, r: 16 };
const SMALLER: Readonly<Record<string, number>> = { micro: 1 / 8, small: 1 / 4, medium: 1 / 2, large: 1 };

/**
 * Connections that an instance allows, where the CDK knows its class. Undefined for everything else: the check then
 * asks for `maxConnections`, and nothing is guessed.
 */
export function instanceConnections(instance: rds.IDatabaseInstance): number | undefined {
  const child = instance.node.defaultChild;
  if (!(child instanceof rds.CfnDBInstance) || hasOwnParameters(child.dbParameterGroupName)) return undefined;
  const engine = Engine.ofDatabase(instance.engine);
  if (engine === Engine.SQLSERVER) return SQL_SERVER;
  const gib = memoryOf(String(child.stack.resolve(child.dbInstanceClass)));
  return engine === undefined || gib === undefined ? undefined : ofMemory(gib);
}

/** The same for an Aurora cluster: by the largest capacity of Serverless v2, of which the parameter is computed. */
export function clusterConnections(cluster: rds.IDatabaseCluster): number | undefined {
  const child = cluster.node.defaultChild;
  if (!(child instanceof rds.CfnDBCluster) || hasOwnParameters(child.dbClusterParameterGroupName))
    return undefined;
  const { minCapacity, maxCapacity } = scalingOf(child);
  if (typeof maxCapacity !== 'number' || typeof minCapacity !== 'number') return undefined;
  const connections = ofMemory(maxCapacity * GIB_PER_ACU);
  return minCapacity <= 0.5 ? Math.min(connections, MOST_OF_A_SMALL_SERVERLESS) : connections;
}

/** Aurora's own, where the least capacity is 0. */
const PAUSES_AFTER_SECONDS = 300;

/** After how many seconds without a connection a cluster pauses by itself; undefined for one that doesn't, or is imported. */
export function pausesAfter(cluster: rds.IDatabaseCluster): number | undefined {
  const child = cluster.node.defaultChild;
  if (!(child instanceof rds.CfnDBCluster)) return undefined;
  const { minCapacity, secondsUntilAutoPause } = scalingOf(child);
  return minCapacity === 0 ? (secondsUntilAutoPause ?? PAUSES_AFTER_SECONDS) : undefined;
}

/** The CDK's clusters say their capacity lazily, when they have their instances. */
function scalingOf(cluster: rds.CfnDBCluster): rds.CfnDBCluster.ServerlessV2ScalingConfigurationProperty {
  return cluster.stack.resolve(cluster.serverlessV2ScalingConfiguration) ?? {};
}

/** A parameter group of one's own may say anything. AWS's own are named so. */
function hasOwnParameters(group: string | undefined): boolean {
  return group !== undefined && !group.startsWith('default.');
}

function memoryOf(instanceClass: string): number | undefined {
  const [, family = '', size = ''] = /^db\.([a-z])\d+[a-z]*\.(\w+)$/.exec(instanceClass) ?? [];
  const large = LARGE[family];
  const times = /^(\d*)xlarge$/.exec(size);
  const factor = times ? 2 * Number(times[1] || 1) : SMALLER[size];
  return large === undefined || factor === undefined ? undefined : large * factor;
}

function ofMemory(gib: number): number {
  return Math.min(MOST, Math.floor((gib * GIB * LEFT_FOR_DATABASE) / BYTES_PER_CONNECTION));
}
