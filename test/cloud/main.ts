import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Aws, awsEnvironment } from './aws.ts';
import { type CloudDatabase, startDatabase } from './database.ts';
import { type Context, Deployment } from './deploy.ts';
import { type Emulator, startEmulator } from './emulator.ts';
import { Scenario } from './scenario.ts';
import { StepFailed, Steps } from './steps.ts';

/**
 * Deploys the app with its example on an emulator of AWS and works with what was deployed.
 *
 * RELAYBOX_CLOUD_ENDPOINT: an emulator that runs already, such as LocalStack; without it, a MiniStack is started.
 * RELAYBOX_CLOUD_DATABASE_URL: a PostgreSQL that runs already; without it, one is started.
 * RELAYBOX_CLOUD_DATABASE_HOST: its name as the functions reach it, where that is another (functions in containers).
 */
const { RELAYBOX_CLOUD_ENDPOINT, RELAYBOX_CLOUD_DATABASE_URL, RELAYBOX_CLOUD_DATABASE_HOST } = process.env;

const steps = new Steps();
let emulator: Emulator | undefined;
let database: CloudDatabase | undefined;
let deployment: Deployment | undefined;
let aws: Aws | undefined;
let failed = 0;
try {
  emulator = await startEmulator(RELAYBOX_CLOUD_ENDPOINT);
  database = await startDatabase(RELAYBOX_CLOUD_DATABASE_URL, RELAYBOX_CLOUD_DATABASE_HOST);
  console.log(`emulator at ${emulator.endpoint}, PostgreSQL at ${database.host}:${database.port}`);
  // The example's own tables are the application's business: Relaybox migrates only its own.
  const tables = fileURLToPath(new URL('../../examples/orders/tables.sql', import.meta.url));
  await database.pool.query(readFileSync(tables, 'utf8'));

  const environment = awsEnvironment(emulator.endpoint);
  aws = new Aws(emulator.endpoint);
  deployment = new Deployment(environment);
  const scenario = new Scenario({
    steps,
    aws,
    deployment,
    database,
    environment,
    context: await context(aws, database),
  });
  await scenario.run();
} catch (error) {
  failed = 1;
  if (!(error instanceof StepFailed)) console.error(error);
  // The functions' own words are in there.
  const log = emulator?.log().split('\n').slice(-80).join('\n');
  if (log) console.log(`── the emulator's last words\n${log}`);
} finally {
  aws?.close();
  deployment?.clean();
  await database?.stop();
  await emulator?.stop();
}
console.log(`cloud: ${steps.passed} passed, ${failed} failed`);
process.exitCode = failed;

async function context(
  client: Aws,
  { host, port, database, user, password }: CloudDatabase,
): Promise<Context> {
  const secret = await client.secret('relaybox-cloud-database', { username: user, password });
  return {
    'relaybox:emulator': 'true',
    'relaybox:example': 'true',
    'relaybox:database': 'existing',
    'relaybox:databaseSecretArn': secret,
    'relaybox:databaseHost': host,
    'relaybox:databasePort': String(port),
    'relaybox:databaseName': database,
    'relaybox:databaseMaxConnections': '200',
    'relaybox:databaseTls': 'false',
  };
}
