import { ConfigurationError } from '../../message/errors.ts';
import type { Credentials } from '../credentials.ts';

/** Where a SQL Server database is, and how to log in. */
export type SqlServerSettings = SqlServerUrl | SqlServerHost;

/** A URL: `sqlserver://user:password@host:1433/database`, for laptops and tests. */
export interface SqlServerUrl {
  readonly url: string;
}

/** A host with credentials that may change while connections are open. */
export interface SqlServerHost {
  readonly host: string;
  /** @default 1433 */
  readonly port?: number;
  readonly database: string;
  /** Left out where the secret holds it. */
  readonly user?: string | undefined;
  readonly credentials: SqlServerCredentials;
  /** True behind RDS Proxy: session settings that would pin the connection are not sent. @default false */
  readonly proxy?: boolean;
  /** False only for a database on a private network whose certificate can't be checked. @default true, but for loopback */
  readonly tls?: boolean | undefined;
}

/** How each new connection gets its password. A token signed by IAM is for a proxy, which then has a secret of its own. */
export type SqlServerCredentials = Credentials;

const example = 'sqlserver://user:password@host:1433/database';

/** Puts either form in the other one's terms, checked. */
export function resolveSettings(settings: SqlServerSettings): SqlServerHost & { readonly tls: boolean } {
  const host = 'url' in settings ? fromUrl(settings.url) : settings;
  const tls = host.tls ?? !isLoopback(host.host);
  if ('iam' in host.credentials) {
    if (host.user === undefined) {
      throw new ConfigurationError('a database with IAM login needs its user named');
    }
    if (!host.proxy) {
      throw new ConfigurationError(
        'RDS for SQL Server takes no IAM login by itself: use a secret, or RDS Proxy with "proxy": true',
      );
    }
  }
  return { ...host, tls };
}

/** True for the machine itself, where nobody listens on the wire. */
function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/** Never shows the URL, which may hold a password: only which part of it is wrong. */
function fromUrl(text: string): SqlServerHost {
  if (!URL.canParse(text)) {
    throw new ConfigurationError(
      `the database URL can't be read: it must look like ${example}, with % for what isn't allowed in a URL`,
    );
  }
  const url = new URL(text);
  if (url.protocol !== 'sqlserver:' && url.protocol !== 'mssql:') {
    throw new ConfigurationError(
      `the database URL begins with "${url.protocol}": it must look like ${example}`,
    );
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const database = decoded(url.pathname.slice(1), 'database');
  if (host === '')
    throw new ConfigurationError(`the database URL names no host: it must look like ${example}`);
  if (database === '')
    throw new ConfigurationError(`the database URL names no database: it must look like ${example}`);
  if (url.username === '')
    throw new ConfigurationError(`the database URL names no user: it must look like ${example}`);
  const tls = tlsOf(url.searchParams);
  return {
    host,
    ...(url.port === '' ? {} : { port: Number(url.port) }),
    database,
    user: decoded(url.username, 'user'),
    credentials: { password: decoded(url.password, 'password') },
    ...(tls === undefined ? {} : { tls }),
  };
}

/** `encrypt` is the only parameter. Without verification encryption protects from nobody, so there is no third way. */
function tlsOf(parameters: URLSearchParams): boolean | undefined {
  let tls: boolean | undefined;
  for (const [name, value] of parameters) {
    if (name !== 'encrypt') {
      throw new ConfigurationError(
        `the database URL has the parameter "${name}", which isn't supported: leave it out`,
      );
    }
    if (value !== 'true' && value !== 'false') {
      throw new ConfigurationError(`the database URL has encrypt=${value}: use true or false`);
    }
    tls = value === 'true';
  }
  return tls;
}

function decoded(part: string, what: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new ConfigurationError(`the database URL's ${what} has a % that begins no escape: write it as %25`);
  }
}
