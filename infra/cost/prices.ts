/** A price and where it was read; docs/cost.md has the addresses. None was taken from AWS's price list itself. */
export interface Price {
  /** What is paid for. */
  readonly name: string;
  /** Dollars, us-east-1, without free tiers. */
  readonly dollars: number;
  readonly per: string;
  readonly source: string;
}

/** Hours of a month, as AWS counts them. */
export const HOURS = 730;
export const MINUTES = HOURS * 60;

/** AWS's own page for the service, as search engines and transcripts have it: the pages fill in most figures by script. */
const page = 'AWS’s price page';
const thirdParty = 'third party, 2026';
const toolkit = 'AWS’s agent toolkit, 2026';
/** Written from memory; nothing was found that says it or denies it. */
const unconfirmed = 'not confirmed';

/** Prices that the estimate is made of. */
export const prices = {
  lambdaGbSecond: price('Lambda, time', 0.0000133334, 'GB-second on ARM', thirdParty),
  lambdaRequest: price('Lambda, requests', 0.2e-6, 'request', thirdParty),
  sqsRequest: price('SQS standard', 0.4e-6, 'request of up to 64 KB', thirdParty),
  sqsFifoRequest: price('SQS FIFO', 0.5e-6, 'request of up to 64 KB', thirdParty),
  sqsFairRequest: price('SQS standard, with a group', 0.1e-6, 'request beside its price', thirdParty),
  eventBridgeEvent: price('EventBridge, own events', 1e-6, 'event of up to 64 KB', thirdParty),
  schedulerInvocation: price('EventBridge Scheduler', 1e-6, 'invocation', thirdParty),
  interfaceEndpointHour: price('Interface endpoint', 0.01, 'hour and zone', thirdParty),
  natHour: price('NAT gateway', 0.045, 'hour', page),
  publicAddressHour: price('Public IPv4 address', 0.005, 'hour', 'AWS’s community site, 2024'),
  rdsProxyVcpuHour: price('RDS Proxy', 0.015, 'vCPU and hour', toolkit),
  acuHour: price('Aurora Serverless v2', 0.12, 'ACU and hour', toolkit),
  gp3GbMonth: price('RDS storage, gp3', 0.115, 'GB and month', thirdParty),
  secretMonth: price('Secrets Manager', 0.4, 'secret and month', page),
  keyMonth: price('KMS', 1, 'key and month', page),
  alarmMonth: price('CloudWatch alarm', 0.1, 'metric that an alarm reads and month', thirdParty),
  metricMonth: price('CloudWatch metric', 0.3, 'metric and month', thirdParty),
  dashboardMonth: price('CloudWatch dashboard', 3, 'dashboard and month', thirdParty),
  logsGb: price('CloudWatch Logs', 0.5, 'GB written', thirdParty),
  traceMonth: price('X-Ray', 5e-6, 'trace recorded', unconfirmed),
} as const satisfies Record<string, Price>;

/** Instances by the hour, one zone. What isn't here isn't guessed. */
export const instanceHours: Readonly<Record<string, Price>> = {
  'postgres db.t4g.micro': price('RDS PostgreSQL db.t4g.micro', 0.016, 'hour', thirdParty),
  'postgres db.t4g.small': price('RDS PostgreSQL db.t4g.small', 0.032, 'hour', thirdParty),
  'postgres db.t4g.medium': price('RDS PostgreSQL db.t4g.medium', 0.065, 'hour', thirdParty),
};

function price(name: string, dollars: number, per: string, source: string): Price {
  return { name, dollars, per, source };
}
