import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { type Bench, type Figure, type Goal, met, type Scenario } from './scenario.ts';
import { claim } from './scenarios/claim.ts';
import { drain } from './scenarios/drain.ts';
import { peers } from './scenarios/peers.ts';
import { type BenchServer, serverSettings, startBenchServer } from './server.ts';

const scenarios: readonly Scenario[] = [drain, claim, peers];
/** What `--quick` runs: everything that has a goal. */
const quick: readonly Scenario[] = [drain, claim];

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    scenario: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    messages: { type: 'string', default: '100000' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) {
  process.stdout.write(`npm run bench -- [--quick] [--json] [--scenario name]... [--rounds n] [--messages n]
scenarios: ${scenarios.map(({ name }) => name).join(', ')}
Exit code 1 where a goal is not met.
`);
  process.exit(0);
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

function chosen(): readonly Scenario[] {
  const names = values.scenario;
  if (!names) return values.quick ? quick : scenarios;
  return names.map((name) => {
    const scenario = scenarios.find((one) => one.name === name);
    if (!scenario)
      throw new Error(`no scenario "${name}"; there are ${scenarios.map((s) => s.name).join(', ')}`);
    return scenario;
  });
}

const began = performance.now();
say(
  `PostgreSQL, durable (fsync and synchronous_commit on), ${serverSettings.join(', ')}; ${availableParallelism()} processors`,
);
const server: BenchServer = await startBenchServer();
const figures: Figure[] = [];
const goals: Goal[] = [];
try {
  const bench: Bench = {
    database: () => server.database(),
    rounds: Number(values.rounds ?? (values.quick ? 3 : 5)),
    messages: Number(values.messages),
    say,
  };
  for (const scenario of chosen()) {
    const result = await scenario.run(bench);
    figures.push(...result.figures);
    goals.push(...result.goals);
  }
} finally {
  await server.stop();
}

for (const { name, unit, median, lowest, highest, samples } of figures) {
  const [m, l, h] = [median, lowest, highest].map((value) =>
    unit === 'ms' ? value.toFixed(2) : String(Math.round(value)),
  );
  say(`${name}: ${m} ${unit} (${l} to ${h}, ${samples} samples)`);
}
for (const goal of goals) {
  say(`${met(goal) ? 'met   ' : 'NOT MET'} ${goal.name}: ${goal.value.toFixed(2)}, ${goal.is} ${goal.goal}`);
}
if (values.json) {
  const seconds = Math.round((performance.now() - began) / 1000);
  const report = {
    goals: goals.map((goal) => ({
      name: goal.name,
      value: goal.value,
      goal: goal.goal,
      is: goal.is,
      met: met(goal),
    })),
    figures,
    server: { durable: true, settings: serverSettings, processors: availableParallelism() },
    seconds,
  };
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
process.exitCode = goals.every(met) ? 0 : 1;
