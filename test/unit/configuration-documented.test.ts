import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const variable = /\bRELAYBOX_[A-Z]+(?:_[A-Z]+)*\b/g;

function inCode(files: string): Set<string> {
  const lines = globSync(files, { cwd: root }).flatMap((file) => read(file).split('\n'));
  // Errors' codes begin alike.
  return new Set(
    lines.filter((line) => !/\bcode\b/.test(line)).flatMap((line) => line.match(variable) ?? []),
  );
}

const page = read('docs/configuration.md');
const documented = new Set(page.match(variable) ?? []);

it('docs/configuration.md has every variable that the library, the constructs, the laptop and the command line read', () => {
  const names = inCode('{shared,functions,infra,local,cli}/**/*.ts');
  expect(names.size).toBeGreaterThan(20);
  expect([...names].filter((name) => !documented.has(name))).toEqual([]);
});

it('docs/configuration.md has no variable that nothing reads', () => {
  const names = inCode('{shared,functions,infra,local,cli,test/support}/**/*.ts');
  expect([...documented].filter((name) => !names.has(name))).toEqual([]);
});

it('what docs/configuration.md says of defaults is what is', async () => {
  const { readSettings } = await import('../../shared/lambda/config.ts');
  const { relay, messageLease, retention } = readSettings({ RELAYBOX_DATABASE_URL: 'postgres://h/d' });
  const shown = {
    RELAYBOX_MODE: relay.mode,
    RELAYBOX_POLL_SECONDS: relay.pollSeconds,
    RELAYBOX_BATCH_SIZE: relay.batchSize,
    RELAYBOX_PARALLELISM: relay.parallelism,
    RELAYBOX_LEASE_SECONDS: relay.leaseSeconds,
    RELAYBOX_AFTER_SUCCESS: relay.afterSuccess,
    RELAYBOX_ON_FAILED_KEY: relay.onFailedKey,
    RELAYBOX_RETRY: JSON.stringify(relay.retry),
    RELAYBOX_BREAKER: JSON.stringify(relay.breaker),
    RELAYBOX_MESSAGE_LEASE_SECONDS: messageLease.minimumSeconds,
    RELAYBOX_LEASE_MARGIN_SECONDS: messageLease.marginSeconds,
    RELAYBOX_OUTBOX_RETENTION_DAYS: retention.outboxDays,
    RELAYBOX_INBOX_RETENTION_DAYS: retention.inboxDays,
    RELAYBOX_RECEIPT_RETENTION_DAYS: retention.receiptsDays,
  };
  for (const [name, value] of Object.entries(shown)) {
    const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\``));
    expect(row?.split(' | ')[2]?.replaceAll('`', ''), name).toBe(String(value));
  }
});
