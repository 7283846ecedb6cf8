/**
 * What a synthesised template costs in a month in which nothing happens.
 *
 *     npx cdk synth --quiet && node scripts/cost.ts cdk.out/Relaybox.template.json --destinations 2 --types 3
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { idleCost, type Resources } from '../infra/cost/idle.ts';
import { costTable } from '../infra/cost/table.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    destinations: { type: 'string', default: '1' },
    types: { type: 'string', default: '0' },
  },
});
const template = positionals[0];
if (template === undefined) {
  console.error('usage: node scripts/cost.ts <template.json> [--destinations n] [--types n]');
  process.exit(2);
}
const { Resources: resources } = JSON.parse(readFileSync(template, 'utf8')) as { Resources: Resources };
const assumptions = { destinations: Number(values.destinations), messageTypes: Number(values.types) };
console.log(costTable(idleCost(resources, assumptions)));
