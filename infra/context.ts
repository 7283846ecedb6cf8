import type { Node } from 'constructs';
import type { AcceptedFinding } from './checks/index.ts';
import type { KnownQueueFacts } from './constructs/queue-facts.ts';
import { readAcceptedFindings, readQueueFacts } from './context-facts.ts';

/** The app's settings, from `cdk.json` or `-c relaybox:<name>=<value>`. What each means stands in `docs/deploying.md`. */
export interface AppSettings {
  readonly stackName: string;
  readonly source: string;
  readonly engine: 'postgres' | 'sqlserver';
  /** Leaves out what an emulator doesn't have; see `docs/localstack.md`. */
  readonly emulator: boolean;
  /** Deploys the example application beside it. */
  readonly example: boolean;
  readonly network: NetworkSettings;
  readonly database: NewDatabaseSettings | ExistingDatabaseSettings;
  readonly destinations: Readonly<Record<string, DestinationSettings>>;
  readonly inboxes: readonly InboxSettings[];
  /** Of the tables; the engine's default where it is not said. */
  readonly schema: string | undefined;
  readonly alarmTopicArn: string | undefined;
  readonly alarmEmail: string | undefined;
  readonly mode: 'scheduled' | 'continuous';
  readonly sweepMinutes: number;
  readonly relayMemory: number;
  readonly afterSuccess: 'keep' | 'delete' | 'archive';
  /** Findings of the checks that whoever deploys answers for. */
  readonly acceptedFindings: readonly AcceptedFinding[];
}

/** Where the functions run. */
export interface NetworkSettings {
  /** An existing VPC; undefined makes a new one. */
  readonly vpcId: string | undefined;
  /** Its private subnets; without them the VPC is looked up, which needs credentials. */
  readonly subnetIds: readonly string[] | undefined;
  readonly availabilityZones: readonly string[] | undefined;
  /** The way out. */
  readonly egress: 'endpoints' | 'nat' | 'provided';
  /** Zones that an endpoint stands in; each costs. */
  readonly endpointZones: number;
}

/** A database made with the app. */
export interface NewDatabaseSettings {
  readonly kind: 'new';
  readonly databaseName: string;
  readonly instanceType: string;
  readonly multiAz: boolean;
  readonly storageGb: number;
}

/** A database that is there. */
export interface ExistingDatabaseSettings {
  readonly kind: 'existing';
  readonly databaseName: string;
  readonly host: string;
  readonly port: number | undefined;
  readonly secretArn: string;
  readonly securityGroupId: string | undefined;
  readonly maxConnections: number | undefined;
  readonly proxy: boolean;
  readonly tls: boolean;
}

/** A destination by its ARN. */
export interface DestinationSettings {
  readonly arn: string;
  readonly keyed: boolean | undefined;
  /** What a queue of somebody else's doesn't tell. */
  readonly queueFacts: KnownQueueFacts | undefined;
}

/** An inbox; without a queue one is made. */
export interface InboxSettings {
  readonly source: string;
  readonly queueArn: string | undefined;
  readonly consumer: string | undefined;
  /** What a queue of somebody else's doesn't tell. */
  readonly queueFacts: KnownQueueFacts | undefined;
}

const PREFIX = 'relaybox:';

/** Reads the settings. One error names everything that is wrong with them. */
export function readSettings(node: Node): AppSettings {
  const context = new Context(node);
  const engine = context.choice('engine', ['postgres', 'sqlserver'], 'postgres');
  const settings: AppSettings = {
    stackName: context.text('stackName') ?? 'Relaybox',
    source: context.text('source') ?? 'orders-service',
    engine,
    emulator: context.flag('emulator', false),
    example: context.flag('example', false),
    network: readNetwork(context),
    database: readDatabase(context, engine),
    destinations: readDestinations(context),
    inboxes: readInboxes(context),
    schema: context.text('schema'),
    alarmTopicArn: context.text('alarmTopicArn'),
    alarmEmail: context.text('alarmEmail'),
    mode: context.choice('mode', ['scheduled', 'continuous'], 'scheduled'),
    sweepMinutes: context.integer('sweepMinutes', 1, 1440) ?? 1,
    relayMemory: context.integer('relayMemory', 128, 10_240) ?? 512,
    afterSuccess: context.choice('afterSuccess', ['keep', 'delete', 'archive'], 'keep'),
    acceptedFindings: readAcceptedFindings(context.json('acceptedFindings', []), context.problem),
  };
  context.finish();
  return settings;
}

function readNetwork(context: Context): NetworkSettings {
  const vpcId = context.text('vpcId');
  return {
    vpcId,
    subnetIds: context.list('subnetIds'),
    availabilityZones: context.list('availabilityZones'),
    egress: context.choice(
      'egress',
      ['endpoints', 'nat', 'provided'],
      vpcId === undefined ? 'endpoints' : 'provided',
    ),
    endpointZones: context.integer('endpointZones', 1, 3) ?? 1,
  };
}

function readDatabase(context: Context, engine: 'postgres' | 'sqlserver'): AppSettings['database'] {
  const databaseName = context.text('databaseName') ?? 'app';
  const kind = context.choice('database', ['new', 'existing'], 'new');
  // All are read, so that none of them passes for unknown.
  const made = {
    instanceType: context.text('instanceType') ?? (engine === 'postgres' ? 't4g.micro' : 't3.small'),
    // SQL Server Express, which the app makes, has no standby.
    multiAz: context.flag('multiAz', engine === 'postgres'),
    storageGb: context.integer('storageGb', 20, 65_536) ?? 20,
  };
  const there = {
    host: context.text('databaseHost') ?? '',
    port: context.integer('databasePort', 1, 65_535),
    secretArn: context.text('databaseSecretArn') ?? '',
    securityGroupId: context.text('databaseSecurityGroupId'),
    maxConnections: context.integer('databaseMaxConnections', 1, 1_000_000),
    proxy: context.flag('databaseProxy', false),
    tls: context.flag('databaseTls', true),
  };
  if (kind === 'new') return { kind, databaseName, ...made };
  if (there.host === '') context.problem('databaseHost', 'set for an existing database');
  if (there.secretArn === '') context.problem('databaseSecretArn', 'set for an existing database');
  return { kind, databaseName, ...there };
}

function readDestinations(context: Context): AppSettings['destinations'] {
  const entries = Object.entries(context.json('destinations', {}));
  return Object.fromEntries(
    entries.flatMap(([name, value]): [string, DestinationSettings][] => {
      const { arn, keyed, queueFacts } = fieldsOf(typeof value === 'string' ? { arn: value } : value);
      const facts = readQueueFacts(`destinations.${name}.queueFacts`, queueFacts, context.problem);
      if (typeof arn === 'string' && arn.startsWith('arn:')) {
        return [[name, { arn, keyed: typeof keyed === 'boolean' ? keyed : undefined, queueFacts: facts }]];
      }
      context.problem(
        `destinations.${name}`,
        `the ARN of a queue or a bus, or { "arn": …, "keyed": …, "queueFacts": … }`,
      );
      return [];
    }),
  );
}

function readInboxes(context: Context): InboxSettings[] {
  const given = context.json('inboxes', []);
  if (!Array.isArray(given)) {
    context.problem('inboxes', 'a list such as [{ "source": "payments-service", "queueArn": "arn:…" }]');
    return [];
  }
  return given.flatMap((value: unknown, index): InboxSettings[] => {
    const { source, queueArn, consumer, queueFacts } = fieldsOf(value);
    if (typeof source !== 'string') {
      context.problem(`inboxes[${index}].source`, 'set');
      return [];
    }
    const facts = readQueueFacts(`inboxes[${index}].queueFacts`, queueFacts, context.problem);
    return [{ source, queueArn: textOf(queueArn), consumer: textOf(consumer), queueFacts: facts }];
  });
}

/** Reads values that may come as JSON from a file, or as a text from the command line. */
class Context {
  readonly #values: ReadonlyMap<string, unknown>;
  readonly #read = new Set<string>();
  readonly #problems: string[] = [];

  constructor(node: Node) {
    const all: Record<string, unknown> = node.getAllContext();
    const ours = Object.entries(all).filter(([name]) => name.startsWith(PREFIX));
    this.#values = new Map(ours.map(([name, value]) => [name.slice(PREFIX.length), value]));
  }

  readonly problem = (name: string, must: string): void => {
    this.#problems.push(`${PREFIX}${name} must be ${must}`);
  };

  finish(): void {
    for (const name of this.#values.keys()) {
      if (!this.#read.has(name)) {
        const known = [...this.#read].sort();
        const near = known.find((other) => isNear(name, other));
        const meant = near === undefined ? '' : `did you mean ${PREFIX}${near}? `;
        this.problem(name, `left out: ${meant}known are ${known.join(', ')}`);
      }
    }
    if (this.#problems.length > 0) throw new Error(`The app's context: ${this.#problems.join('; ')}`);
  }

  text(name: string): string | undefined {
    const value = this.#value(name);
    return value === undefined || value === '' ? undefined : String(value);
  }

  choice<const T extends string>(name: string, choices: readonly T[], otherwise: T): T {
    const value = this.text(name);
    if (value === undefined) return otherwise;
    const choice = choices.find((known) => known === value);
    if (choice === undefined) this.problem(name, `one of ${choices.join(', ')}, not ${value}`);
    return choice ?? otherwise;
  }

  flag(name: string, otherwise: boolean): boolean {
    return this.choice(name, ['true', 'false'], otherwise ? 'true' : 'false') === 'true';
  }

  integer(name: string, from: number, to: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (Number.isInteger(value) && value >= from && value <= to) return value;
    this.problem(name, `a whole number from ${from} to ${to}, not ${text}`);
    return undefined;
  }

  list(name: string): readonly string[] | undefined {
    const value = this.#value(name);
    if (Array.isArray(value)) return value.map(String);
    return this.text(name)?.split(',');
  }

  json(name: string, otherwise: object): object {
    const value = this.#value(name);
    if (value === undefined) return otherwise;
    try {
      const parsed: unknown = typeof value === 'string' ? JSON.parse(value) : value;
      if (typeof parsed === 'object' && parsed !== null) return parsed;
    } catch {
      // Said below.
    }
    this.problem(name, 'JSON');
    return otherwise;
  }

  #value(name: string): unknown {
    this.#read.add(name);
    return this.#values.get(name);
  }
}

/** Whether a name is the other one's beginning, or has its letters, in another case or order. */
function isNear(name: string, known: string): boolean {
  const begins = name.length > 2 && (known.startsWith(name) || name.startsWith(known));
  return begins || lettersOf(name) === lettersOf(known);
}

function lettersOf(name: string): string {
  return [...name.toLowerCase().replaceAll(/[^a-z]/g, '')].sort().join('');
}

function fieldsOf(
  value: unknown,
): { readonly [field: string]: unknown } & Record<
  'arn' | 'keyed' | 'source' | 'queueArn' | 'consumer' | 'queueFacts',
  unknown
> {
  const fields = typeof value === 'object' && value !== null ? value : {};
  return {
    arn: undefined,
    keyed: undefined,
    source: undefined,
    queueArn: undefined,
    consumer: undefined,
    queueFacts: undefined,
    ...fields,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
