import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const variable = /\bRELAYBOX_[A-Z]+(?:_[A-Z]+)*\b/g;

const page = read('docs/configuration.md');
const documented = new Set(page.match(variable) ?? []);

/** Errors' codes begin alike; docs/errors.md has all of them. RELAYBOX_SCHEMA is both. */
const codes = new Set(read('docs/errors.md').match(/(?<=^\| `)RELAYBOX_[A-Z_]+/gm));

function inCode(files: string): Set<string> {
  const names = globSync(files, { cwd: root }).flatMap((file) => read(file).match(variable) ?? []);
  return new Set(names.filter((name) => !codes.has(name) || documented.has(name)));
}

it('docs/configuration.md has every variable that the library, the constructs, the laptop and the command line read', () => {
  const names = inCode('{shared,functions,infra,local,cli,scripts,examples}/**/*.ts');
  expect(names.size).toBeGreaterThan(20);
  expect([...names].filter((name) => !documented.has(name))).toEqual([]);
});

it('some page has every variable that the tests’ runs read', () => {
  const pages = globSync('docs/*.md', { cwd: root }).map(read).join('\n');
  const names = inCode('{test/support,test/cloud,test/bench,test/package,test/sqlserver}/**/*.ts');
  expect([...names].filter((name) => !pages.includes(`\`${name}\``))).toEqual([]);
});

it('docs/configuration.md has the variables of others that the library reads by name', () => {
  const named = globSync('shared/**/*.ts', { cwd: root }).flatMap((file) =>
    [...read(file).matchAll(/(?:env\[|reader\.\w+\()'([A-Z_]+)'/g)].map((match) => match[1] ?? ''),
  );
  // Lambda sets these, and nobody else may.
  const own = (name: string): boolean => /^(?:_X_AMZN|AWS_LAMBDA)_/.test(name);
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((name) => !own(name) && !page.includes(`\`${name}\``))).toEqual([]);
});

it('docs/configuration.md has no variable that nothing reads', () => {
  const names = inCode('{shared,functions,infra,local,cli,test/support}/**/*.ts');
  expect([...documented].filter((name) => !names.has(name))).toEqual([]);
});

it('docs/configuration.md has each field of a variable that is an object, and no other', () => {
  const fields = (table: string): string[] => {
    const rows = page.slice(page.indexOf(table)).split('\n\n')[0]?.split('\n').slice(2) ?? [];
    return rows.flatMap((row) => row.split(' | ')[0]?.match(/(?<=[`"])\w+(?=[`"])/g) ?? []).sort();
  };
  const taken = (file: string): string[] => {
    const lists = [...read(file).matchAll(/reader\.only\(\w+, \[([^\]]+)\]/g)].map((match) => match[1] ?? '');
    return [...new Set(lists.flatMap((list) => list.match(/\w+/g) ?? []))].sort();
  };
  expect(fields('| field of `RELAYBOX_DATABASE`')).toEqual(taken('shared/lambda/config-database.ts'));
  expect(fields('| field of a destination')).toEqual(taken('shared/lambda/config-destinations.ts'));
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

/** The tables under a heading, as rows of cells. */
function rowsUnder(heading: string): readonly (readonly string[])[] {
  const [, section = ''] = page.split(`\n${heading}\n`);
  const lines = (section.split(/^#/m)[0] ?? '').split('\n');
  return lines.filter((line) => line.startsWith('| `')).map((line) => line.split(' | '));
}

const named = (rows: readonly (readonly string[])[]): string[] =>
  rows.map(([first]) => /`(\w+)`/.exec(first ?? '')?.[1] ?? '');

it.each([
  ['inboxHandler', [['shared/lambda/inbox-handler.ts', 'InboxHandlerOptions']]],
  ['sqsConsumer', [['shared/lambda/sqs-consumer.ts', 'SqsConsumerOptions']]],
  ['transactional', [['shared/lambda/transactional.ts', 'TransactionalOptions']]],
  ['createIngest', [['shared/lambda/ingest.ts', 'IngestFunctionOptions']]],
  [
    'createRelay',
    [
      ['shared/lambda/relay.ts', 'RelayFunctionOptions'],
      ['shared/outbox/relay-options.ts', 'RelayOptions'],
    ],
  ],
] as const)('docs/configuration.md has each option of %s, and no other', (name, interfaces) => {
  const options = interfaces.flatMap(([file, type]) => {
    const body = new RegExp(`export interface ${type}\\b[^{]*{([\\s\\S]*?)\\n}`).exec(read(file))?.[1] ?? '';
    return [...body.matchAll(/^ {2}readonly (\w+)/gm)].map((match) => match[1] ?? '');
  });
  const told = named(rowsUnder(`### ${name}`));
  expect(told.length).toBeGreaterThan(1);
  expect(told.toSorted()).toEqual(options.filter((option) => option !== 'settings').toSorted());
});

it('what docs/configuration.md says of options’ defaults is what is', async () => {
  const { defaults } = await import('../../shared/delivery/defaults.ts');
  const { relayDefaults } = await import('../../shared/outbox/relay-options.ts');
  const { retryBackoff } = await import('../../shared/delivery/backoff.ts');
  const parts = ({ firstSeconds, factor, maxSeconds }: typeof retryBackoff) =>
    `${firstSeconds}, ${factor}, ${maxSeconds}`;
  const told = (heading: string, option: string): string => {
    const row = rowsUnder(`### ${heading}`).find(([first]) => first === `| \`${option}\``);
    return (row?.[2] ?? '').replaceAll('`', '');
  };
  expect(told('inboxHandler', 'batchSize')).toBe(String(defaults.batchSize));
  expect(told('inboxHandler', 'parallelism')).toBe(String(defaults.parallelism));
  expect(told('inboxHandler', 'maxRetries')).toBe(String(defaults.inboxMaxRetries));
  expect(told('inboxHandler', 'retry')).toBe(parts(retryBackoff));
  expect(told('sqsConsumer', 'parallelism')).toBe(String(defaults.parallelism));
  expect(told('createIngest', 'maxRetries')).toBe(String(defaults.inboxMaxRetries));
  for (const [option, value] of Object.entries(relayDefaults)) {
    if (typeof value === 'function') continue;
    const shown = typeof value === 'object' ? parts(value) : String(value);
    expect(told('createRelay', option), option).toMatch(new RegExp(`(^|[,;] )${shown}$`));
  }
});
