/** What a server allows by its default parameters, where its size tells. A parameter group of one's own may say otherwise. */

const GIB = 1024 ** 3;
/** PostgreSQL on RDS and Aurora: LEAST({DBInstanceClassMemory/9531392}, 5000). */
const BYTES_PER_CONNECTION = 9_531_392;
const MOST = 5_000;
/** Of an instance's memory the operating system and the agents take a part before the formula applies; more of a small one. */
const LEFT_FOR_DATABASE = 0.75;
/** SQL Server's default, `user connections` 0. */
const SQL_SERVER = 32_767;
/** Aurora Serverless caps it so while the least capacity is 0 or 0.5. */
const MOST_OF_A_SMALL_SERVERLESS = 2_000;
const GIB_PER_ACU = 2;

/** Memory in GiB by instance size, of the general-purpose and burstable classes. */
const MEMORY: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  t: { micro: 1, small: 2, medium: 4, large: 8, xlarge: 16, '2xlarge': 32 },
  m: { large: 8, xlarge: 16, '2xlarge': 32, '4xlarge': 64, '8xlarge': 128 },
  r: { large: 16, xlarge: 32, '2xlarge': 64, '4xlarge': 128, '8xlarge': 256 },
};

/**
 * Connections of an instance type like `t4g.micro` or `db.t4g.micro`. Undefined where the type isn't known: then the
 * check answers unknown instead of guessing.
 */
export function maxConnectionsOfInstance(
  engine: 'postgres' | 'sqlserver',
  instanceType: string,
): number | undefined {
  if (engine === 'sqlserver') return SQL_SERVER;
  const match = /^(?:db\.)?([tmr])\d+[a-z]*\.(\w+)$/.exec(instanceType);
  const gib = match?.[1] === undefined || match[2] === undefined ? undefined : MEMORY[match[1]]?.[match[2]];
  return gib === undefined ? undefined : ofMemory(gib);
}

/** Connections of an Aurora Serverless v2 cluster: by its greatest capacity, since that is what the parameter is computed from. */
export function maxConnectionsOfServerless(minAcu: number, maxAcu: number): number {
  const connections = ofMemory(maxAcu * GIB_PER_ACU);
  return minAcu <= 0.5 ? Math.min(connections, MOST_OF_A_SMALL_SERVERLESS) : connections;
}

function ofMemory(gib: number): number {
  return Math.min(MOST, Math.floor((gib * GIB * LEFT_FOR_DATABASE) / BYTES_PER_CONNECTION));
}
