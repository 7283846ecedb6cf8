import { ConfigurationError } from '../../message/errors.ts';
import { readUrl, type UrlForm, withTls } from '../connection-url.ts';
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

/** `sslmode` is the only parameter: others would be sent at startup, where poolers refuse them. */
const form: UrlForm = {
  protocols: ['postgres:', 'postgresql:'],
  example: 'postgres://user:password@host:5432/database',
  tls: {
    name: 'sslmode',
    values: new Map([
      ['disable', false],
      ['require', true],
      ['verify-full', true],
    ]),
    advice: 'verify-full (which "require" is taken for too), or disable',
  },
};

/** Puts either form in the other one's terms, checked. */
export function resolveSettings(settings: PostgresSettings): PostgresHost & { readonly tls: boolean } {
  const host: PostgresHost = 'url' in settings ? readUrl(settings.url, form) : settings;
  const resolved = withTls(host);
  if ('iam' in host.credentials && !resolved.tls) {
    throw new ConfigurationError(
      'a database with IAM login takes only TLS connections: leave out "tls": false',
    );
  }
  return resolved;
}
