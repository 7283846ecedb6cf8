import { ConfigurationError } from '../message/errors.ts';
import type { EnvironmentReader } from './environment.ts';

/** How to reach the database: a URL on a laptop, host and secret on AWS. */
export type DatabaseSettings = DatabaseUrl | DatabaseHost;

/** A URL with its password: for laptops and tests. */
export interface DatabaseUrl {
  readonly url: string;
}

/** A host, with a secret or IAM to log in by. */
export interface DatabaseHost {
  readonly engine: 'postgres' | 'sqlserver';
  readonly host: string;
  readonly port: number;
  readonly database: string;
  /** Undefined where the secret holds it. */
  readonly user: string | undefined;
  /** How each new connection gets its password: read from the secret, or signed by IAM. */
  readonly credentials: { readonly secretArn: string } | { readonly iam: true };
  /** True behind RDS Proxy: no startup parameters, and its certificate is one of Amazon's public ones. */
  readonly proxy: boolean;
  /** False only for a database that has no TLS, on a private network. */
  readonly tls: boolean;
  /** How long a connection may take to be there; longer where the database may have to wake up. Undefined: 5 s. */
  readonly connectSeconds: number | undefined;
}

const VARIABLE = 'RELAYBOX_DATABASE';
const PORTS = { postgres: 5432, sqlserver: 1433 } as const;

/** Reads where the database is. Undefined where that is a problem, which the reader then holds. */
export function readDatabase(reader: EnvironmentReader): DatabaseSettings | undefined {
  const url = reader.text('RELAYBOX_DATABASE_URL');
  if (url !== undefined) {
    if (reader.text(VARIABLE) !== undefined)
      return reader.problem(VARIABLE, 'left out where RELAYBOX_DATABASE_URL is set');
    return URL.canParse(url)
      ? { url }
      : reader.problem('RELAYBOX_DATABASE_URL', 'a URL like postgres://user:password@host:5432/database');
  }
  if (reader.text(VARIABLE) === undefined) {
    return reader.problem(
      VARIABLE,
      'set (or RELAYBOX_DATABASE_URL on a laptop): the function has no database',
    );
  }
  return readHost(reader);
}

function readHost(reader: EnvironmentReader): DatabaseHost | undefined {
  const fields = reader.object(VARIABLE);
  if (fields === undefined) return undefined;
  reader.only(fields, [
    'engine',
    'host',
    'port',
    'database',
    'user',
    'secretArn',
    'iam',
    'proxy',
    'tls',
    'connectSeconds',
  ]);
  const needed = (name: string): string | undefined =>
    fields.values[name] === undefined
      ? reader.problem(`${VARIABLE}.${name}`, 'set')
      : reader.textField(fields, name);

  const engine = reader.choiceField(fields, 'engine', ['postgres', 'sqlserver']) ?? 'postgres';
  const host = needed('host');
  const database = needed('database');
  const port = reader.numberField(fields, 'port', 1, 65_535) ?? PORTS[engine];
  const user = reader.textField(fields, 'user');
  const secretArn = reader.textField(fields, 'secretArn');
  const iam = reader.booleanField(fields, 'iam') ?? false;
  const proxy = reader.booleanField(fields, 'proxy') ?? false;
  const tls = reader.booleanField(fields, 'tls') ?? true;
  const connectSeconds = reader.numberField(fields, 'connectSeconds', 1, 300);

  if (iam === (secretArn !== undefined)) {
    return reader.problem(VARIABLE, 'given exactly one of secretArn and "iam": true');
  }
  if (iam && user === undefined) return reader.problem(`${VARIABLE}.user`, 'set where "iam" is true');
  if (host === undefined || database === undefined) return undefined;
  const credentials = secretArn === undefined ? ({ iam: true } as const) : { secretArn };
  return { engine, host, port, database, user, credentials, proxy, tls, connectSeconds };
}

/** The settings as an engine's connections take them. Throws `ConfigurationError` where they are another engine's. */
export function connectionSettings(
  database: DatabaseSettings,
  builtFor: DatabaseHost['engine'],
): DatabaseUrl | Omit<DatabaseHost, 'engine'> {
  if ('url' in database) return database;
  const { engine, ...host } = database;
  if (engine === builtFor) return host;
  throw new ConfigurationError(
    `RELAYBOX_DATABASE.engine is ${engine}, but this function was built for ${builtFor}`,
  );
}
