import { SchemaError } from '../../message/errors.ts';
import { type Check, type Found, schemaCheckName } from './examine.ts';
import type { HealthEvidence } from './health-checks.ts';
import { ofLane, ofRelays } from './lane-findings.ts';
import type { Row } from './rows.ts';

/** The check of version and rights. */
export function schemaCheck({ checkSchema }: HealthEvidence): Check {
  return {
    check: schemaCheckName,
    look: async () => {
      try {
        await checkSchema();
        return [];
      } catch (error) {
        if (!(error instanceof SchemaError)) throw error;
        const todo = 'run "relaybox migrate", or give the grant that is named';
        return [{ severity: 'problem', what: error.message, todo }];
      }
    },
  };
}

/** Checks of the lanes' figures, and of who works on them. */
export function lanesChecks({ status, relayAges }: HealthEvidence): readonly Check[] {
  return [
    { check: 'lane', look: async () => (await status()).lanes.flatMap(ofLane) },
    { check: 'worker', look: async () => ofRelays(await relayAges()) },
  ];
}

/** A connection that anybody on its way can read. */
export const unencrypted: Found = {
  severity: 'warning',
  what: 'this connection is not encrypted',
  todo: 'connect with TLS, and set rds.force_ssl = 1 on the server',
};

/** A server that is about to have no connection left (`connections`, `max_connections`). */
export function crowded(row: Row): readonly Found[] {
  const [used, most] = [row.number('connections'), row.number('max_connections')];
  if (used <= most * 0.85) return [];
  return [
    {
      severity: 'warning',
      what: `${used} of ${most} connections are in use`,
      todo: 'lower the concurrency of functions or their pools, or put a proxy before the database',
    },
  ];
}

/** Keys of the outbox whose held messages wait for nothing (`orphaned`). */
export function orphans(rows: readonly Row[]): readonly Found[] {
  return some(rows.filter((row) => row.flag('orphaned')).length, (count) => ({
    severity: 'warning',
    what: `${count} keys of the outbox have held messages with nothing before them (a key that is just being published looks the same)`,
    todo: 'maintenance lets them go within its next cycle; if they are still here then, look at its log',
  }));
}

/** Keyed messages of the inbox without a key (`count`). */
export function stranded(row: Row | undefined): readonly Found[] {
  return counted(row, (count) => ({
    severity: 'problem',
    what: `${count} keyed inbox messages are in a key without a row: no handler finds them`,
    todo: 'maintenance mends that within its next cycle; if they are still here then, look at its log',
  }));
}

/** Traces of another program's worker (`claimed`, `published`) in a column of the outbox that Relaybox never sets. */
export function foreignWorkers(row: Row | undefined, column: string): readonly Found[] {
  const [claimed, published] = [row?.number('claimed') ?? 0, row?.number('published') ?? 0];
  return some(claimed + published, () => ({
    severity: 'problem',
    what: `another program's outbox worker is at work on this table: ${claimed} rows are in its claim now, ${published} of the last hour's published rows still carry one (Relaybox never sets ${column} in the outbox)`,
    todo: "turn that program's outbox worker off: both at once cost duplicates and order. Its services may go on inserting",
  }));
}

/** A finding where the row's `count` isn't 0. */
export function counted(row: Row | undefined, finding: (count: number) => Found): readonly Found[] {
  return some(row?.number('count') ?? 0, finding);
}

function some(count: number, finding: (count: number) => Found): readonly Found[] {
  return count === 0 ? [] : [finding(count)];
}
