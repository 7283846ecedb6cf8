/** A price and where it was read. None was checked against AWS's own price list. */
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

const memory = 'not checked';

/** Prices that the estimate is made of. */
export const prices = {
  lambdaGbSecond: price('Lambda, time', 0.0000133334, 'GB-second on ARM', 'third party, 2026'),
  lambdaRequest: price('Lambda, requests', 0.2e-6, 'request', 'third party, 2026'),
  sqsRequest: price('SQS standard', 0.4e-6, 'request of up to 64 KB', 'third party, 2026'),
  sqsFifoRequest: price('SQS FIFO', 0.5e-6, 'request of up to 64 KB', 'third party, 2026'),
  sqsFairRequest: price(
    'SQS standard, with a group',
    0.1e-6,
    'request beside its price',
    'third party, 2026',
  ),
  eventBridgeEvent: price('EventBridge, own events', 1e-6, 'event of up to 64 KB', memory),
  schedulerInvocation: price('EventBridge Scheduler', 1e-6, 'invocation', memory),
  interfaceEndpointHour: price('Interface endpoint', 0.01, 'hour and zone', memory),
  natHour: price('NAT gateway', 0.045, 'hour', memory),
  publicAddressHour: price('Public IPv4 address', 0.005, 'hour', memory),
  rdsProxyVcpuHour: price('RDS Proxy', 0.015, 'vCPU and hour', "AWS's agent toolkit, 2026"),
  acuHour: price('Aurora Serverless v2', 0.12, 'ACU and hour', "AWS's agent toolkit, 2026"),
  gp3GbMonth: price('RDS storage, gp3', 0.115, 'GB and month', memory),
  secretMonth: price('Secrets Manager', 0.4, 'secret and month', memory),
  keyMonth: price('KMS', 1, 'key and month', memory),
  alarmMonth: price('CloudWatch alarm', 0.1, 'metric that an alarm reads and month', memory),
  metricMonth: price('CloudWatch metric', 0.3, 'metric and month', memory),
  dashboardMonth: price('CloudWatch dashboard', 3, 'dashboard and month', memory),
  logsGb: price('CloudWatch Logs', 0.5, 'GB written', memory),
  traceMonth: price('X-Ray', 5e-6, 'trace recorded', memory),
} as const satisfies Record<string, Price>;

/** Instances by the hour, one zone. What isn't here isn't guessed. */
export const instanceHours: Readonly<Record<string, Price>> = {
  'postgres db.t4g.micro': price('RDS PostgreSQL db.t4g.micro', 0.016, 'hour', 'third party, 2026'),
  'postgres db.t4g.small': price('RDS PostgreSQL db.t4g.small', 0.032, 'hour', memory),
  'postgres db.t4g.medium': price('RDS PostgreSQL db.t4g.medium', 0.065, 'hour', memory),
};

function price(name: string, dollars: number, per: string, source: string): Price {
  return { name, dollars, per, source };
}
