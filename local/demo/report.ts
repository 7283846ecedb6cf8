import type { Placed } from './orders.ts';
import type { Effects, Tally } from './tally.ts';

/** Everything the day left behind. */
export interface Outcome {
  readonly tally: Tally;
  readonly placed: Placed;
  readonly seed: number;
  readonly relayKills: number;
  readonly outageSeconds: number;
  readonly redelivered: number;
  readonly duplicatesSuppressed: number;
  readonly elapsedMs: number;
}

/** The conservation law: each order has its effects once, or its message is where somebody looks; and nothing is left to do. */
export function lawHolds({ tally }: Outcome): boolean {
  return lostOf(tally) === 0 && doubledOf(tally) === 0 && tally.pending === 0;
}

function lostOf({ invoices, emails }: Tally): number {
  return invoices.lost + emails.lost;
}

function doubledOf({ invoices, emails }: Tally): number {
  return invoices.doubled + emails.doubled;
}

/** The one line for programs. */
export function toJson(outcome: Outcome): string {
  const { tally } = outcome;
  return JSON.stringify({
    orders: tally.orders,
    invoices: tally.invoiceRows,
    emails: tally.emailRows,
    published: tally.published,
    redelivered: outcome.redelivered,
    duplicatesSuppressed: outcome.duplicatesSuppressed,
    relayKills: outcome.relayKills,
    outageSeconds: outcome.outageSeconds,
    failed: tally.failed,
    discarded: tally.invoices.discarded + tally.emails.discarded,
    pending: tally.pending,
    lost: lostOf(tally),
    doubled: doubledOf(tally),
    refused: outcome.placed.refused,
    seed: outcome.seed,
    elapsedMs: Math.round(outcome.elapsedMs),
  });
}

/** The table for people. */
export function toText(outcome: Outcome): string {
  const { tally, placed } = outcome;
  const { invoices, emails } = tally;
  const fact = (name: string, value: string | number, note = ''): string =>
    `  ${name.padEnd(38)}${String(value).padStart(8)}${note && `   ${note}`}`;
  const row = (name: string, of: (effects: Effects) => number): string =>
    `  ${name.padEnd(38)}${String(of(invoices)).padStart(8)}${String(of(emails)).padStart(10)}`;
  const failures = tally.failures.map(
    ({ item, attempts, reason }) => `    ${item}, after ${attempts} attempts: ${shorten(reason)}`,
  );
  return [
    '',
    'WHAT HAPPENED',
    fact('orders placed', placed.orders),
    fact('order refused, and rolled back', placed.refused, 'its event was larger than any broker carries'),
    fact('the broker was down', `${outcome.outageSeconds} s`),
    fact('relays killed in mid-batch (SIGKILL)', outcome.relayKills),
    fact('messages published', tally.published, 'order.placed and invoice.created'),
    fact('deliveries of a message seen before', outcome.redelivered),
    fact('  of those recognised and dropped', outcome.duplicatesSuppressed),
    '',
    `WHAT IS IN THE TABLES${'invoices'.padStart(27)}${'emails'.padStart(10)}`,
    row('written', (effects) => effects.done),
    row('on their way', (effects) => effects.pending),
    row('failed, kept for a person to decide', (effects) => effects.failed),
    ...failures,
    row('discarded by a person', (effects) => effects.discarded),
    `  ${''.padEnd(38)}${'————'.padStart(8)}${'————'.padStart(10)}`,
    row('of the orders placed', () => tally.orders),
    '',
    row('lost', (effects) => effects.lost),
    row('written twice', (effects) => effects.doubled),
    '',
    verdict(outcome),
  ].join('\n');
}

function verdict(outcome: Outcome): string {
  const seconds = (outcome.elapsedMs / 1000).toFixed(1);
  if (lawHolds(outcome)) {
    return `✔ Every order has its invoice and its email once, or its message waits where somebody looks. (${seconds} s)`;
  }
  const { tally } = outcome;
  if (lostOf(tally) + doubledOf(tally) === 0) {
    return `✘ Nothing is lost or doubled, but ${tally.pending} messages were still on their way after ${seconds} s.`;
  }
  return `✘ A promise was broken: ${lostOf(tally)} effects are lost, ${doubledOf(tally)} are there twice. (${seconds} s)`;
}

function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > 90 ? `${line.slice(0, 89)}…` : line;
}
