import { DatabaseUnavailable } from '../message/errors.ts';

/** How each new connection gets its password. */
export type Credentials =
  | { readonly password: string | (() => Promise<string>) }
  /** A secret in Secrets Manager with `username` and `password`, as RDS makes it. */
  | { readonly secretArn: string }
  /** A token signed by IAM. */
  | { readonly iam: true };

/** A host to log in at. */
export interface LoginHost {
  readonly host: string;
  readonly port?: number;
  /** Left out where the secret holds it. */
  readonly user?: string | undefined;
  readonly credentials: Credentials;
}

/** What a connection logs in with. */
export interface Login {
  readonly user: string;
  readonly password: string;
}

/**
 * Logins to try one after the other until one isn't refused: a rotation changes the password on the server before or
 * after it changes the secret. Each is asked for only when the one before was refused.
 */
export type Logins = () => readonly (() => Promise<Login | undefined>)[];

/** Reads one version of a secret; undefined where there is none of that stage. */
export type ReadSecret = (arn: string, stage: 'AWSCURRENT' | 'AWSPENDING') => Promise<string | undefined>;

/** Signs a login token. */
export type SignToken = (host: { hostname: string; port: number; username: string }) => Promise<string>;

/** How long a secret may be used without reading it again. */
const secretMs = 5 * 60_000;

/** Makes the logins of a database. AWS's clients are loaded only where they are needed. */
export function loginsOf(
  host: LoginHost,
  aws: { readSecret?: ReadSecret; signToken?: SignToken } = {},
  defaultPort = 5432,
): Logins {
  const { credentials } = host;
  if ('secretArn' in credentials) {
    return secretLogins(credentials.secretArn, host.user, aws.readSecret ?? readSecret);
  }
  const user = host.user ?? '';
  if ('iam' in credentials) {
    const sign = aws.signToken ?? signToken;
    const to = { hostname: host.host, port: host.port ?? defaultPort, username: user };
    return () => [async () => ({ user, password: await sign(to) })];
  }
  const { password } = credentials;
  return () => [async () => ({ user, password: typeof password === 'string' ? password : await password() })];
}

/**
 * Opens a connection with the first login that isn't refused, none tried twice. Throws the last refusal, or at once what
 * isn't one.
 */
export async function openWith<Connection>(
  logins: Logins,
  refused: (error: unknown) => boolean,
  open: (login: Login) => Promise<Connection>,
): Promise<Connection> {
  const tried: Login[] = [];
  let refusal: unknown;
  for (const next of logins()) {
    const login = await next();
    if (login === undefined || tried.some((before) => same(before, login))) continue;
    tried.push(login);
    try {
      return await open(login);
    } catch (error) {
      if (!refused(error)) throw error;
      refusal = error;
    }
  }
  throw refusal ?? new DatabaseUnavailable('there is no login for the database');
}

function same(one: Login, other: Login): boolean {
  return one.user === other.user && one.password === other.password;
}

function secretLogins(arn: string, user: string | undefined, read: ReadSecret): Logins {
  let cached: { login: Login; at: number } | undefined;

  const current = async (): Promise<Login | undefined> => {
    const login = await loginIn(await read(arn, 'AWSCURRENT'), arn, user);
    cached = login && { login, at: Date.now() };
    return login;
  };
  return () => {
    const age = cached === undefined ? Number.POSITIVE_INFINITY : Date.now() - cached.at;
    const fresh = cached !== undefined && age >= 0 && age < secretMs ? cached.login : undefined;
    const pending = async (): Promise<Login | undefined> =>
      await loginIn(await read(arn, 'AWSPENDING'), arn, user);
    return fresh === undefined ? [current, pending] : [async () => fresh, current, pending];
  };
}

function loginIn(secret: string | undefined, arn: string, user: string | undefined): Login | undefined {
  if (secret === undefined) return undefined;
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(secret);
  } catch {
    // The parser's message would quote the secret.
    throw new DatabaseUnavailable(`the secret ${arn} is no JSON: it must have "username" and "password"`);
  }
  const username = user ?? fields?.['username'];
  const password = fields?.['password'];
  if (typeof username !== 'string' || typeof password !== 'string') {
    throw new DatabaseUnavailable(`the secret ${arn} must have "username" and "password", both texts`);
  }
  return { user: username, password };
}

// Short, so that a missing route to the service is reported by name and not by the function's timeout.
const patience = { connectionTimeout: 2000, requestTimeout: 3000 } as const;

async function readSecret(arn: string, stage: 'AWSCURRENT' | 'AWSPENDING'): Promise<string | undefined> {
  const { GetSecretValueCommand, ResourceNotFoundException, SecretsManagerClient } = await import(
    '@aws-sdk/client-secrets-manager'
  );
  const region = arn.split(':')[3];
  const client = new SecretsManagerClient({
    ...(region ? { region } : {}),
    maxAttempts: 2,
    requestHandler: patience,
  });
  try {
    const answer = await client.send(new GetSecretValueCommand({ SecretId: arn, VersionStage: stage }));
    return answer.SecretString;
  } catch (error) {
    if (stage === 'AWSPENDING' && error instanceof ResourceNotFoundException) return undefined;
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    throw new DatabaseUnavailable(
      `the database's secret ${arn} could not be read (${reason}): check the function's permission, and its route to Secrets Manager`,
      { cause: error },
    );
  } finally {
    client.destroy();
  }
}

async function signToken(host: { hostname: string; port: number; username: string }): Promise<string> {
  const { Signer } = await import('@aws-sdk/rds-signer');
  return await new Signer(host).getAuthToken();
}
