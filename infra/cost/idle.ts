import { HOURS, instanceHours, MINUTES, prices } from './prices.ts';

/** A template's resources, as CloudFormation has them. */
export type Resources = Readonly<Record<string, Resource>>;

export interface Resource {
  readonly Type: string;
  readonly Properties?: Readonly<Record<string, unknown>>;
}

/** One line of the estimate. */
export interface CostPart {
  readonly name: string;
  /** How the figure comes about. */
  readonly how: string;
  /** Dollars a month; undefined for what has no price here. */
  readonly dollars: number | undefined;
}

/** What only the running system shows. */
export interface IdleAssumptions {
  /** Lanes that report figures: destinations, and message types. @default what the template's functions are named for */
  readonly destinations: number;
  readonly messageTypes: number;
}

/** An event source polls an idle queue with five pollers, each waiting for 20 s. */
const EMPTY_RECEIVES = 15 * MINUTES;
/** A sweep that finds nothing, warm: two or three short statements. */
const IDLE_RUN_SECONDS = 0.1;
/** Lambda's own lines and one blob of metrics. */
const LOG_BYTES_PER_RUN = 2_000;
/** Zeros by the relay, figures by maintain; see shared/lambda/relay.ts and shared/operations/maintain.ts. */
const METRICS_OF_DESTINATION = 5 + 7;
/** Zeros by the handler, figures by maintain. */
const METRICS_OF_TYPE = 3 + 7;
/** Which of them the alarms over all lanes read. What only an event writes is not there while nothing happens. */
const READ_BY_QUERIES = ['FailedMessages', 'BlockedKeys', 'ExpiredLeases', 'LostLeases'];
const READ_OF_DESTINATION = [...READ_BY_QUERIES, 'OpenLanes', 'HopLimit'];
const READ_OF_TYPE = [...READ_BY_QUERIES, 'UnhandledTypes'];
const QUERY = /^SELECT \w+\((\w+)\)/;

/** What a deployment costs in a month in which nothing happens, part by part, largest first. */
export function idleCost(resources: Resources, assumptions: IdleAssumptions): CostPart[] {
  const all = Object.values(resources);
  const runs = runsOf(resources);
  const parts = [
    ...all.flatMap(databaseOf),
    ...networkOf(all),
    metrics(assumptions),
    counted(all, 'AWS::CloudWatch::Alarm', 'Alarms', prices.alarmMonth.dollars, (alarm) =>
      alarmMetrics(alarm, assumptions),
    ),
    counted(all, 'AWS::CloudWatch::Dashboard', 'Dashboard', prices.dashboardMonth.dollars),
    secrets(all),
    counted(all, 'AWS::KMS::Key', 'KMS keys', prices.keyMonth.dollars),
    polling(all),
    ...sweeps(runs),
  ];
  return parts
    .filter(({ dollars }) => dollars !== 0)
    .sort((one, other) => (other.dollars ?? 0) - (one.dollars ?? 0));
}

/** Runs of a month, with the memory of the function that runs. */
interface Runs {
  readonly count: number;
  readonly gb: number;
}

function runsOf(resources: Resources): Runs[] {
  return Object.values(resources).flatMap((schedule) => {
    if (schedule.Type !== 'AWS::Scheduler::Schedule') return [];
    const minutes = minutesOf(schedule.Properties?.['ScheduleExpression']);
    const arn = field(field(schedule.Properties?.['Target'], 'Arn'), 'Fn::GetAtt');
    const fn = Array.isArray(arn) ? resources[String(arn[0])] : undefined;
    const memory = Number(fn?.Properties?.['MemorySize'] ?? 128);
    return minutes === undefined ? [] : [{ count: MINUTES / minutes, gb: memory / 1024 }];
  });
}

function minutesOf(expression: unknown): number | undefined {
  const match = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(String(expression));
  if (match === null) return undefined;
  return Number(match[1]) * { minute: 1, hour: 60, day: 1440 }[match[2] as 'minute' | 'hour' | 'day'];
}

function sweeps(runs: readonly Runs[]): CostPart[] {
  const count = sum(runs.map((run) => run.count));
  const gbSeconds = sum(runs.map((run) => run.count * run.gb * IDLE_RUN_SECONDS));
  const compute = count * prices.lambdaRequest.dollars + gbSeconds * prices.lambdaGbSecond.dollars;
  const how = `${Math.round(count).toLocaleString('en-US')} runs of ${plural(runs.length, 'schedule')}`;
  return [
    { name: 'Sweeps: Lambda', how: `${how}, ${IDLE_RUN_SECONDS * 1000} ms each`, dollars: compute },
    { name: 'Sweeps: Scheduler', how, dollars: count * prices.schedulerInvocation.dollars },
    { name: 'Sweeps: traces', how, dollars: count * prices.traceMonth.dollars },
    {
      name: 'Sweeps: logs',
      how: `${how}, ${LOG_BYTES_PER_RUN / 1000} KB each`,
      dollars: ((count * LOG_BYTES_PER_RUN) / 1e9) * prices.logsGb.dollars,
    },
  ];
}

function polling(all: readonly Resource[]): CostPart {
  const number = all.filter(({ Type }) => Type === 'AWS::Lambda::EventSourceMapping').length;
  return {
    name: 'Polling of queues',
    how: `${plural(number, 'event source')} × ${EMPTY_RECEIVES.toLocaleString('en-US')} empty receives`,
    dollars: number * EMPTY_RECEIVES * prices.sqsRequest.dollars,
  };
}

function metrics({ destinations, messageTypes }: IdleAssumptions): CostPart {
  const number = destinations * METRICS_OF_DESTINATION + messageTypes * METRICS_OF_TYPE;
  return {
    name: 'Metrics of lanes',
    how: `${plural(destinations, 'destination')} × ${METRICS_OF_DESTINATION} + ${plural(messageTypes, 'message type')} × ${METRICS_OF_TYPE} = ${plural(number, 'metric')}`,
    dollars: number * prices.metricMonth.dollars,
  };
}

function networkOf(all: readonly Resource[]): CostPart[] {
  const nats = all.filter(({ Type }) => Type === 'AWS::EC2::NatGateway').length;
  const zones = all
    .filter(({ Type }) => Type === 'AWS::EC2::VPCEndpoint')
    .filter(({ Properties }) => Properties?.['VpcEndpointType'] === 'Interface')
    .map(({ Properties }) => (Properties?.['SubnetIds'] as readonly unknown[] | undefined)?.length ?? 1);
  const { natHour, publicAddressHour, interfaceEndpointHour } = prices;
  return [
    {
      name: 'NAT gateways',
      how: `${nats} with a public address, without data`,
      dollars: nats * HOURS * (natHour.dollars + publicAddressHour.dollars),
    },
    {
      name: 'VPC endpoints',
      how: `${plural(zones.length, 'endpoint')}, ${plural(sum(zones), 'zone')} in all, without data`,
      dollars: sum(zones) * HOURS * interfaceEndpointHour.dollars,
    },
  ];
}

function databaseOf({ Type, Properties = {} }: Resource): CostPart[] {
  if (Type === 'AWS::RDS::DBCluster') return serverless(Properties);
  if (Type === 'AWS::RDS::DBProxy') {
    const dollars = 2 * HOURS * prices.rdsProxyVcpuHour.dollars;
    return [{ name: 'RDS Proxy', how: 'for 2 vCPU, the least', dollars }];
  }
  const type = String(Properties['DBInstanceClass']);
  if (Type !== 'AWS::RDS::DBInstance' || type === 'db.serverless') return [];
  const zones = Properties['MultiAZ'] === true ? 2 : 1;
  const gb = Number(Properties['AllocatedStorage'] ?? 0);
  const hour = instanceHours[`${Properties['Engine']} ${type}`];
  return [
    {
      name: `Database ${Properties['Engine']} ${type}`,
      how: `${zones === 2 ? 'two zones' : 'one zone'}${hour === undefined ? ', no price here: see the price list of RDS' : ''}`,
      dollars: hour && zones * HOURS * hour.dollars,
    },
    { name: 'Database storage', how: `${gb} GB`, dollars: zones * gb * prices.gp3GbMonth.dollars },
  ];
}

function serverless(properties: Readonly<Record<string, unknown>>): CostPart[] {
  const least = Number(field(properties['ServerlessV2ScalingConfiguration'], 'MinCapacity') ?? Number.NaN);
  if (Number.isNaN(least)) return [];
  const awake = Math.max(0.5, least);
  return [
    {
      name: 'Aurora Serverless v2',
      how: `${awake} ACU${least === 0 ? ', kept awake by sweeps more often than its pause; 0 while it is paused' : ''}`,
      dollars: awake * HOURS * prices.acuHour.dollars,
    },
  ];
}

/** Those of the template, and those that RDS makes and manages. */
function secrets(all: readonly Resource[]): CostPart {
  const managed = ({ Properties }: Resource) => Properties?.['ManageMasterUserPassword'] === true;
  const number = all.filter((each) => each.Type === 'AWS::SecretsManager::Secret' || managed(each)).length;
  const { dollars } = prices.secretMonth;
  return { name: 'Secrets', how: `${number} × $${dollars.toFixed(2)}`, dollars: number * dollars };
}

/** An alarm over metric math is charged for each metric in it, one over a query for each that the query reads. */
function alarmMetrics({ Properties }: Resource, { destinations, messageTypes }: IdleAssumptions): number {
  const metrics = Properties?.['Metrics'];
  if (!Array.isArray(metrics)) return 1;
  const queried = metrics.map((metric) => QUERY.exec(String(field(metric, 'Expression')))?.[1] ?? '');
  const inLanes = sum(
    queried.map(
      (name) =>
        (READ_OF_DESTINATION.includes(name) ? destinations : 0) +
        (READ_OF_TYPE.includes(name) ? messageTypes : 0),
    ),
  );
  const named = metrics.filter((metric) => field(metric, 'MetricStat') !== undefined).length;
  return Math.max(1, named + inLanes);
}

function counted(
  all: readonly Resource[],
  type: string,
  name: string,
  dollars: number,
  weight: (resource: Resource) => number = () => 1,
): CostPart {
  const number = sum(all.filter(({ Type }) => Type === type).map(weight));
  return { name, how: `${number} × $${dollars.toFixed(2)}`, dollars: number * dollars };
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function plural(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
