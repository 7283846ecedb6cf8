import { X509Certificate } from 'node:crypto';
import { expect, test } from 'vitest';
import { trustedCertificates } from '../../shared/store/tls.ts';

const YEAR_MS = 365 * 86_400_000;

/** What a region's authority is called, e.g. `eu-central-1 Root CA RSA2048 G1`. */
const authority = /CN=Amazon RDS ([a-z]{2}(?:-[a-z]+)+-\d) Root CA (RSA2048|RSA4096|ECC384) G\d/;

test('the roots of RDS that are bundled stay valid for a year and more, each kind in every region', async () => {
  const regions = new Map<string, Set<string>>();
  for (const pem of await trustedCertificates()) {
    const { subject, validTo } = new X509Certificate(pem);
    const [, region, kind] = authority.exec(subject) ?? [];
    if (region === undefined || kind === undefined) continue;
    if (Date.parse(validTo) < Date.now() + YEAR_MS) continue;
    regions.set(region, (regions.get(region) ?? new Set()).add(kind));
  }
  expect([...regions.keys()]).toEqual(
    expect.arrayContaining(['eu-central-1', 'us-east-1', 'ap-southeast-2']),
  );
  expect(regions.size).toBeGreaterThan(25);
  for (const [region, kinds] of regions) {
    expect([...kinds].sort(), region).toEqual(['ECC384', 'RSA2048', 'RSA4096']);
  }
});
