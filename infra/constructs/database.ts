import { Duration } from 'aws-cdk-lib';
import type * as ec2 from 'aws-cdk-lib/aws-ec2';
import type * as iam from 'aws-cdk-lib/aws-iam';
import type * as rds from 'aws-cdk-lib/aws-rds';
import type * as secretsmanager from 'aws-cdk-lib/aws-secretsmanager';
import type { IDependable } from 'constructs';
import { clusterConnections, instanceConnections, pausesAfter } from './database-limits.ts';
import { Engine } from './engine.ts';

/** What is said of a database, wherever it comes from. */
export interface DatabaseOptions {
  /** The database on the server that holds Relaybox's tables. */
  readonly databaseName: string;
  /**
   * User name and password, as JSON with `username` and `password`. Functions get its ARN, and read it themselves.
   * @default - the secret that the CDK's cluster or instance has
   */
  readonly secret?: secretsmanager.ISecret;
  /**
   * Log in with IAM as this user, without a secret. The user must exist, with `GRANT rds_iam`.
   * @default - with the secret
   */
  readonly iamUser?: string;
  /**
   * Another login for the migration alone, so that the functions' needs no right to change tables.
   * @default - the functions' own login
   */
  readonly migrationSecret?: secretsmanager.ISecret;
  /**
   * Connections that the server allows (behind a proxy: what the proxy allows), for the check of the connection budget.
   * @default - worked out of the instance's class or the cluster's capacity, where the CDK knows them
   */
  readonly maxConnections?: number;
  /**
   * Connections that others hold at most: the applications, a person's session.
   * @default 0
   */
  readonly otherConnections?: number;
  /**
   * Where the database is, and so the functions.
   * @default - the VPC of the CDK's cluster or instance; an imported one doesn't tell
   */
  readonly vpc?: ec2.IVpc;
  /** @default - what the CDK's cluster or instance says; PostgreSQL where it says nothing */
  readonly engine?: Engine;
  /**
   * How long a connection may take to be there.
   * @default Duration.seconds(5); 40 for a cluster of the CDK's that pauses, and has to wake up first
   */
  readonly connectTimeout?: Duration;
  /** @default - the cluster's or instance's own port, else the engine's default */
  readonly port?: number;
}

/** A database that the CDK knows by nothing but its login. */
export interface SecretDatabaseOptions extends DatabaseOptions {
  /** The server's name, as its certificate has it. */
  readonly hostname: string;
  /** The database's security groups; each gets a rule for the functions. @default - none: the way is open already */
  readonly securityGroups?: ec2.ISecurityGroup[];
  /** False only for a database without TLS on a private network. @default true */
  readonly tls?: boolean;
  /** The name is an RDS Proxy's. @default false */
  readonly proxy?: boolean;
}

/** Aurora wakes up in 15 to 30 s; with less, no attempt ever succeeds. */
const WAKING = Duration.seconds(40);

/** What the factories hand over. */
interface DatabaseSource {
  readonly id: string;
  readonly engine: Engine;
  readonly hostname: string;
  readonly port: number;
  readonly proxy?: boolean;
  readonly tls?: boolean;
  readonly secret?: secretsmanager.ISecret | undefined;
  readonly vpc?: ec2.IVpc | undefined;
  readonly maxConnections?: number | undefined;
  readonly pausesAfterSeconds?: number | undefined;
  readonly connectables: readonly ec2.IConnectable[];
  /** What must be there before anybody connects. */
  readonly constructs: readonly IDependable[];
  readonly grantIam?: (grantee: iam.IGrantable, user: string) => iam.Grant;
  /** For the database's own metrics. */
  readonly dimension?: { readonly DBClusterIdentifier: string } | { readonly DBInstanceIdentifier: string };
}

/** The database that Relaybox's tables are in, whoever made it, and how functions log in. */
export class Database {
  /** An Aurora cluster: functions connect to its writer. */
  static fromCluster(cluster: rds.IDatabaseCluster, options: DatabaseOptions): Database {
    return new Database(options, {
      id: cluster.node.path,
      engine: engineOf(Engine.ofDatabase(cluster.engine), options),
      hostname: cluster.clusterEndpoint.hostname,
      port: options.port ?? cluster.clusterEndpoint.port,
      secret: ownSecret(cluster),
      vpc: ownVpc(cluster),
      maxConnections: clusterConnections(cluster),
      pausesAfterSeconds: pausesAfter(cluster),
      connectables: [cluster],
      constructs: [cluster],
      grantIam: (grantee, user) => cluster.grantConnect(grantee, user),
      dimension: { DBClusterIdentifier: cluster.clusterIdentifier },
    });
  }

  /** An RDS instance. */
  static fromInstance(instance: rds.IDatabaseInstance, options: DatabaseOptions): Database {
    return new Database(options, {
      id: instance.node.path,
      engine: engineOf(Engine.ofDatabase(instance.engine), options),
      hostname: instance.instanceEndpoint.hostname,
      port: options.port ?? instance.instanceEndpoint.port,
      secret: ownSecret(instance),
      vpc: ownVpc(instance),
      maxConnections: instanceConnections(instance),
      connectables: [instance],
      constructs: [instance],
      grantIam: (grantee, user) => instance.grantConnect(grantee, user),
      dimension: { DBInstanceIdentifier: instance.instanceIdentifier },
    });
  }

  /** An RDS Proxy. It doesn't tell its secret or VPC: say `secret` (or `iamUser`) and `vpc`. */
  static fromProxy(proxy: rds.IDatabaseProxy, options: DatabaseOptions): Database {
    const engine = engineOf(undefined, options);
    return new Database(options, {
      id: proxy.node.path,
      engine,
      hostname: proxy.endpoint,
      port: options.port ?? engine.defaultPort,
      proxy: true,
      connectables: isConnectable(proxy) ? [proxy] : [],
      constructs: [proxy],
      grantIam: (grantee, user) => proxy.grantConnect(grantee, user),
    });
  }

  /** Any server, by its name and a secret. */
  static fromSecret(secret: secretsmanager.ISecret, options: SecretDatabaseOptions): Database {
    const engine = engineOf(undefined, options);
    return new Database(options, {
      id: secret.node.path,
      engine,
      hostname: options.hostname,
      port: options.port ?? engine.defaultPort,
      proxy: options.proxy ?? false,
      tls: options.tls ?? true,
      secret,
      connectables: options.securityGroups ?? [],
      constructs: options.securityGroups ?? [],
    });
  }

  readonly engine: Engine;
  readonly databaseName: string;
  readonly vpc: ec2.IVpc | undefined;
  readonly maxConnections: number | undefined;
  readonly otherConnections: number;
  /** After how many seconds without a connection it pauses by itself; undefined where it doesn't, or nobody here knows. */
  readonly pausesAfterSeconds: number | undefined;
  /** How functions log in. */
  readonly credentials: 'secret' | 'iam';
  /** How it is called in messages. */
  readonly id: string;
  readonly #options: DatabaseOptions;
  readonly #source: DatabaseSource;

  private constructor(options: DatabaseOptions, source: DatabaseSource) {
    this.#options = options;
    this.#source = source;
    this.id = source.id;
    this.engine = source.engine;
    this.databaseName = options.databaseName;
    this.vpc = options.vpc ?? source.vpc;
    this.maxConnections = options.maxConnections ?? source.maxConnections;
    this.otherConnections = options.otherConnections ?? 0;
    this.pausesAfterSeconds = source.pausesAfterSeconds;
    this.credentials = options.iamUser === undefined ? 'secret' : 'iam';
    if (options.iamUser !== undefined && source.grantIam === undefined) {
      throw new Error(`${source.id}: logging in with IAM needs a cluster, an instance or a proxy of the CDK`);
    }
    if (this.credentials === 'secret') this.#secret('functions');
  }

  /** What must be there before anybody connects. */
  get dependencies(): readonly IDependable[] {
    return this.#source.constructs;
  }

  /** The dimension of the database's own metrics; undefined where the CDK doesn't know the database. */
  get metricDimension(): Record<string, string> | undefined {
    return this.#source.dimension;
  }

  get port(): number {
    return this.#source.port;
  }

  /** The connection settings for `RELAYBOX_DATABASE`: no secret's value is in them. */
  settings(login: 'functions' | 'migration' = 'functions'): Record<string, unknown> {
    const { engine, hostname, port, proxy, tls } = this.#source;
    const { iamUser } = this.#options;
    return {
      engine: engine.name,
      host: hostname,
      port,
      database: this.databaseName,
      ...this.#login(login, iamUser),
      ...(proxy && { proxy: true }),
      ...(tls === false && { tls: false }),
      ...this.#patience(),
    };
  }

  /** What a role must be allowed that `grantConnect` can't reach, in words. */
  get permissionToConnect(): string {
    const { iamUser } = this.#options;
    return iamUser === undefined
      ? `secretsmanager:GetSecretValue on ${this.#secret('functions').secretArn}`
      : `rds-db:connect as ${iamUser}`;
  }

  /** Gives a function its right to the secret or the IAM user. */
  grantConnect(fn: iam.IGrantable, login: 'functions' | 'migration' = 'functions'): void {
    const { iamUser, migrationSecret } = this.#options;
    const byIam = iamUser !== undefined && !(login === 'migration' && migrationSecret);
    if (byIam) this.#source.grantIam?.(fn, iamUser);
    else this.#secret(login).grantRead(fn);
  }

  /**
   * Opens the database's security groups to these, at its port. Said from the client's side, so that between two stacks
   * the rule stands in the client's: the database's own can't depend on it.
   */
  allowFrom(client: ec2.IConnectable, port: ec2.Port): void {
    const groups = client.connections.securityGroups;
    // Such a group needs no rule of its own, and the CDK warns of each that it is given.
    const open = groups.length > 0 && groups.every(({ allowAllOutbound }) => allowAllOutbound);
    for (const database of this.#source.connectables) {
      if (!open) client.connections.allowTo(database, port, 'Relaybox');
      else for (const group of groups) letIn(database, group, port);
    }
  }

  #patience(): Record<string, number> {
    const given = this.#options.connectTimeout;
    const timeout = given ?? (this.pausesAfterSeconds === undefined ? undefined : WAKING);
    return timeout === undefined ? {} : { connectSeconds: timeout.toSeconds() };
  }

  #login(login: 'functions' | 'migration', iamUser: string | undefined): Record<string, unknown> {
    if (iamUser !== undefined && !(login === 'migration' && this.#options.migrationSecret)) {
      return { user: iamUser, iam: true };
    }
    return { secretArn: this.#secret(login).secretArn };
  }

  #secret(login: 'functions' | 'migration'): secretsmanager.ISecret {
    const { secret, migrationSecret } = this.#options;
    const found = (login === 'migration' ? migrationSecret : undefined) ?? secret ?? this.#source.secret;
    if (found !== undefined) return found;
    throw new Error(
      `${this.id} doesn't tell its secret, as an imported database or a proxy can't: say \`secret\`, or \`iamUser\` to log in with IAM`,
    );
  }
}

function letIn(database: ec2.IConnectable, client: ec2.ISecurityGroup, port: ec2.Port): void {
  // A remote rule: between two stacks it stands in the client's.
  for (const group of database.connections.securityGroups)
    group.addIngressRule(client, port, 'Relaybox', true);
}

function engineOf(known: Engine | undefined, options: DatabaseOptions): Engine {
  if (known !== undefined && options.engine !== undefined && known !== options.engine) {
    throw new Error(`engine is ${options.engine.name}, but the database is ${known.name}`);
  }
  return options.engine ?? known ?? Engine.POSTGRES;
}

function ownSecret(database: object): secretsmanager.ISecret | undefined {
  return 'secret' in database ? (database.secret as secretsmanager.ISecret | undefined) : undefined;
}

function ownVpc(database: object): ec2.IVpc | undefined {
  return 'vpc' in database ? (database.vpc as ec2.IVpc | undefined) : undefined;
}

function isConnectable(construct: object): construct is ec2.IConnectable {
  return 'connections' in construct;
}
