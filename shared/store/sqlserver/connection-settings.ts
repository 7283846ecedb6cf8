import { ConfigurationError } from '../../message/errors.ts';
import { readUrl, type UrlForm, withTls } from '../connection-url.ts';
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

/** `encrypt` is the only parameter. Without verification encryption protects from nobody, so there is no third way. */
const form: UrlForm = {
  protocols: ['sqlserver:', 'mssql:'],
  example: 'sqlserver://user:password@host:1433/database',
  tls: {
    name: 'encrypt',
    values: new Map([
      ['true', true],
      ['false', false],
    ]),
    advice: 'true or false',
  },
};

/** Puts either form in the other one's terms, checked. */
export function resolveSettings(settings: SqlServerSettings): SqlServerHost & { readonly tls: boolean } {
  const host: SqlServerHost = 'url' in settings ? readUrl(settings.url, form) : settings;
  const resolved = withTls(host);
  if ('iam' in host.credentials && !host.proxy) {
    throw new ConfigurationError(
      'RDS for SQL Server takes no IAM login by itself: use a secret, or RDS Proxy with "proxy": true',
    );
  }
  return resolved;
}
