import { ConfigurationError } from '../../message/errors.ts';
import type { Credentials } from '../credentials.ts';

/** Where a PostgreSQL database is, and how to log in. */
export type PostgresSettings = PostgresUrl | PostgresHost;

/** A URL: `postgres://user:password@host:5432/database`, for laptops and tests. */
export interface PostgresUrl {
  readonly url: string;
}

/** A host with credentials that may change while connections are open. */
export interface PostgresHost {
  readonly host: string;
  /** @default 5432 */
  readonly port?: number;
  readonly database: string;
  /** Left out where the secret holds it. */
  readonly user?: string | undefined;
  readonly credentials: PostgresCredentials;
  /** True behind RDS Proxy or another pooler: nothing is sent at startup that would pin or refuse the connection. @default false */
  readonly proxy?: boolean;
  /** False only for a database without TLS on a private network. @default true, but for loopback */
  readonly tls?: boolean | undefined;
}

/** How each new connection gets its password. */
export type PostgresCredentials = Credentials;

/** Puts either form in the other one's terms, checked. */
export function resolveSettings(settings: PostgresSettings): PostgresHost & { readonly tls: boolean } {
  const host = 'url' in settings ? fromUrl(settings.url) : settings;
  const tls = host.tls ?? !isLoopback(host.host);
  if ('iam' in host.credentials) {
    if (host.user === undefined)
      throw new ConfigurationError('a database with IAM login needs its user named');
    if (!tls)
      throw new ConfigurationError(
        'a database with IAM login takes only TLS connections: leave out "tls": false',
      );
  }
  return { ...host, tls };
}

/** True for the machine itself, where nobody listens on the wire. */
export function isLoopback(host: string): boolean {
  return (
    host === 'localhost' ||
    host === '::1' ||
    host === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(host) ||
    host.startsWith('/')
  );
}

/** Never shows the URL, which may hold a password: only which part of it is wrong. */
function fromUrl(text: string): PostgresHost {
  const example = 'postgres://user:password@host:5432/database';
  if (!URL.canParse(text)) {
    throw new ConfigurationError(
      `the database URL can't be read: it must look like ${example}, with % for what isn't allowed in a URL`,
    );
  }
  const url = new URL(text);
  if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:') {
    throw new ConfigurationError(
      `the database URL begins with "${url.protocol}": it must look like ${example}`,
    );
  }
  const database = decoded(url.pathname.slice(1), 'database');
  if (url.hostname === '')
    throw new ConfigurationError(`the database URL names no host: it must look like ${example}`);
  if (database === '')
    throw new ConfigurationError(`the database URL names no database: it must look like ${example}`);
  if (url.username === '')
    throw new ConfigurationError(`the database URL names no user: it must look like ${example}`);
  const tls = tlsOf(url.searchParams);
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    ...(url.port === '' ? {} : { port: Number(url.port) }),
    database,
    user: decoded(url.username, 'user'),
    credentials: { password: decoded(url.password, 'password') },
    ...(tls === undefined ? {} : { tls }),
  };
}

/** `sslmode` is the only parameter: others would be sent at startup, where poolers refuse them. */
function tlsOf(parameters: URLSearchParams): boolean | undefined {
  let tls: boolean | undefined;
  for (const [name, value] of parameters) {
    if (name !== 'sslmode') {
      throw new ConfigurationError(
        `the database URL has the parameter "${name}", which isn't supported: leave it out`,
      );
    }
    if (value !== 'disable' && value !== 'require' && value !== 'verify-full') {
      throw new ConfigurationError(
        `the database URL has sslmode=${value}: use verify-full (which "require" is taken for too), or disable`,
      );
    }
    tls = value !== 'disable';
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
