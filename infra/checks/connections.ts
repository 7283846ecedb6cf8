import { ACCOUNT_CONCURRENCY, concurrencyOf } from './concurrency.ts';
import type { DeploymentFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';
import { props } from './props.ts';
import { count } from './words.ts';

const { pass, fail, unknown } = answers('connections');

/** What is left for people, monitoring, the server's own reserve, and functions of the old version during a deployment. */
const USABLE = 0.8;

interface Part {
  readonly id: string;
  readonly role: string;
  readonly connections: number;
  readonly text: string;
}

/** Each instance of a function has a pool of its own: a burst multiplies them, and the database then refuses everybody. */
export function checkConnections(facts: DeploymentFacts): Finding[] {
  const { database } = facts;
  const parts: Part[] = [];
  const open: Finding[] = [];
  for (const each of facts.functions) {
    const concurrency = concurrencyOf(each, facts);
    if (concurrency === undefined || each.connections === undefined) {
      open.push(
        unknown(
          each.id,
          concurrency === undefined
            ? `How many instances run at once is not known (without a limit up to ${count(ACCOUNT_CONCURRENCY, 'instance')}), so neither is what they hold of ${database.id}`
            : `How many connections an instance holds is not known`,
          each.role === 'producer'
            ? props.produceConcurrency
            : 'maxConcurrency on its event source, or reservedConcurrentExecutions on the function',
        ),
      );
      continue;
    }
    const { instances, limited } = concurrency;
    parts.push({
      id: each.id,
      role: each.role,
      connections: instances * each.connections,
      text: `${each.id}: ${instances}${limited ? '' : ' (no limit: the account’s)'} × ${each.connections} = ${instances * each.connections}`,
    });
  }
  return [budget(facts, parts, open.length > 0), ...open];
}

function budget({ database }: DeploymentFacts, parts: readonly Part[], partial: boolean): Finding {
  const used = parts.reduce((sum, part) => sum + part.connections, 0) + database.otherConnections;
  const others =
    database.otherConnections > 0
      ? [`other applications: ${count(database.otherConnections, 'connection')}`]
      : [];
  const list = [...parts.map(({ text }) => text), ...others].join('; ');
  const sum = `${partial ? 'the functions whose number is known hold' : 'all functions together hold'} up to ${count(used, 'connection')} (${list})`;
  if (database.maxConnections === undefined) {
    return unknown(
      database.id,
      `How many connections the database allows is not known; ${sum}, which must be at most 80 % of it, so it must allow ${Math.ceil(used / USABLE)}`,
      props.maxConnections,
    );
  }
  const usable = Math.floor(database.maxConnections * USABLE);
  const limit = `80 % of the ${database.maxConnections} that the database allows = ${usable}`;
  if (used <= usable) return pass(database.id, `${sentence(sum)}, at most ${limit}`);
  const greatest = parts.reduce((most, part) => (part.connections > most.connections ? part : most));
  return fail(
    database.id,
    `${sentence(sum)}, more than ${limit}`,
    `lower the concurrency, ${greatest.id}'s first, or take a larger database (it must allow ${Math.ceil(used / USABLE)}), or put an RDS Proxy between and use Database.fromProxy`,
  );
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
