import type * as ec2 from 'aws-cdk-lib/aws-ec2';
import type * as logs from 'aws-cdk-lib/aws-logs';
import type * as sns from 'aws-cdk-lib/aws-sns';
import type { AcceptedFinding } from '../checks/index.ts';
import type { Database } from './database.ts';
import type { Destination } from './destination.ts';
import type { InboxProps } from './ingest.ts';
import type { MaintainOptions } from './maintain.ts';
import type { MigrationOptions } from './migration.ts';
import type { RelayOptions } from './relay.ts';

/** Relaybox on a database. */
export interface RelayboxProps {
  /** Who we are on the wire. */
  readonly source: string;
  /** Where the tables are. */
  readonly database: Database;
  /** Queues and buses by the logical names that messages are added with. @default - none: messages wait */
  readonly destinations?: Record<string, Destination>;
  /** What arrives. @default - none */
  readonly inboxes?: InboxProps[];
  /** Where alarms ring. @default - alarms are there, and tell nobody */
  readonly alarmTopic?: sns.ITopic;
  /** @default - the engine's default schema, outbox_messages and inbox_messages */
  readonly tables?: TableNames;
  /** @default - woken after each commit, swept each minute */
  readonly relay?: RelayOptions;
  /** @default - each minute; outbox 7 days, inbox 30 days */
  readonly maintenance?: MaintainOptions;
  /** @default - at each deployment that brings other migrations */
  readonly migration?: MigrationOptions;
  /** Where the functions run. @default - the database's VPC */
  readonly vpc?: ec2.IVpc;
  /** @default - private subnets with a way out, where the VPC has some, else the isolated ones */
  readonly vpcSubnets?: ec2.SubnetSelection;
  /** Of all functions. @default - one is made: out to the database's port and to HTTPS, nothing in */
  readonly securityGroups?: ec2.ISecurityGroup[];
  /**
   * `provided`: the way from the functions to SQS, EventBridge and Secrets Manager is there, whatever the synth can see.
   * @default - read from the VPC, where it is the CDK's
   */
  readonly egress?: 'provided';
  /** @default logs.RetentionDays.ONE_MONTH */
  readonly logRetention?: logs.RetentionDays;
  /** X-Ray. @default true */
  readonly tracing?: boolean;
  /** `service` of logs and metrics. Two of one name in an account and region would share their alarms. @default - made of the construct's path */
  readonly serviceName?: string;
  /** @default - alarms and a dashboard */
  readonly monitoring?: MonitoringOptions;
  /** Findings of the synth's checks that somebody answers for. @default - none */
  readonly acceptedFindings?: AcceptedFinding[];
}

/** Names of the tables. */
export interface TableNames {
  readonly schema?: string;
  readonly outboxTable?: string;
  readonly inboxTable?: string;
}

/** What is watched. */
export interface MonitoringOptions {
  /** False leaves alarms and dashboard out. @default true */
  readonly enabled?: boolean;
  /** @default true */
  readonly dashboard?: boolean;
  /** False leaves out alarms on metric math and on composites, which emulators don't know. @default true */
  readonly expressions?: boolean;
  /** Where the runbook stands that the alarms name. @default - docs/operations.md of the package */
  readonly runbookUrl?: string;
}
