import { ConfigurationError } from '../message/errors.ts';
import type { Credentials, LoginHost } from './credentials.ts';

/** What a database URL looks like on one engine. */
export interface UrlForm {
  /** With the colon. */
  readonly protocols: readonly string[];
  readonly example: string;
  /** The one parameter that it may have: what its values mean for TLS, and what to write instead of another value. */
  readonly tls: {
    readonly name: string;
    readonly values: ReadonlyMap<string, boolean>;
    readonly advice: string;
  };
}

/** A database's host with all that is needed to log in. */
export interface UrlHost {
  readonly host: string;
  readonly port?: number;
  readonly database: string;
  readonly user: string;
  readonly credentials: Credentials;
  readonly tls?: boolean;
}

/** Reads a URL. Throws `ConfigurationError`, which never shows the URL (it may hold a password): only which part of it is wrong. */
export function readUrl(text: string, form: UrlForm): UrlHost {
  if (!URL.canParse(text)) {
    throw new ConfigurationError(
      `the database URL can't be read: it must look like ${form.example}, with % for what isn't allowed in a URL`,
    );
  }
  const url = new URL(text);
  if (!form.protocols.includes(url.protocol)) throw unlike(form, `begins with "${url.protocol}"`);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const database = decoded(url.pathname.slice(1), 'database');
  if (host === '') throw unlike(form, 'names no host');
  if (database === '') throw unlike(form, 'names no database');
  if (url.username === '') throw unlike(form, 'names no user');
  const tls = tlsOf(url.searchParams, form);
  return {
    host,
    ...(url.port === '' ? {} : { port: Number(url.port) }),
    database,
    user: decoded(url.username, 'user'),
    credentials: { password: decoded(url.password, 'password') },
    ...(tls === undefined ? {} : { tls }),
  };
}

/** Settings with TLS decided: on, but for the machine itself. Throws `ConfigurationError` for an IAM login without a user. */
export function withTls<Host extends LoginHost & { readonly tls?: boolean | undefined }>(
  host: Host,
): Host & { readonly tls: boolean } {
  if ('iam' in host.credentials && host.user === undefined) {
    throw new ConfigurationError('a database with IAM login needs its user named');
  }
  return { ...host, tls: host.tls ?? !isLoopback(host.host) };
}

/** True for the machine itself, where nobody listens on the wire; a host that begins with a slash is a socket's folder. */
export function isLoopback(host: string): boolean {
  return (
    ['localhost', '::1', '[::1]'].includes(host) || /^127(\.\d{1,3}){3}$/.test(host) || host.startsWith('/')
  );
}

function unlike({ example }: UrlForm, what: string): ConfigurationError {
  return new ConfigurationError(`the database URL ${what}: it must look like ${example}`);
}

/** Other parameters would be sent to the server at startup, where poolers refuse them, or mean nothing. */
function tlsOf(parameters: URLSearchParams, { tls }: UrlForm): boolean | undefined {
  let answer: boolean | undefined;
  for (const [name, value] of parameters) {
    if (name !== tls.name) {
      throw new ConfigurationError(
        `the database URL has the parameter "${name}", which isn't supported: leave it out`,
      );
    }
    answer = tls.values.get(value);
    if (answer === undefined) {
      throw new ConfigurationError(`the database URL has ${name}=${value}: use ${tls.advice}`);
    }
  }
  return answer;
}

function decoded(part: string, what: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new ConfigurationError(`the database URL's ${what} has a % that begins no escape: write it as %25`);
  }
}
