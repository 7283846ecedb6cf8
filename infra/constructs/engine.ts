import type { IClusterEngine, IInstanceEngine } from 'aws-cdk-lib/aws-rds';

/** A database engine that Relaybox runs on. */
export class Engine {
  /** PostgreSQL, on RDS or Aurora. */
  static readonly POSTGRES = new Engine('postgres', 5432);
  /** SQL Server, on RDS. */
  static readonly SQLSERVER = new Engine('sqlserver', 1433);

  /** The engine of that name: `postgres` or `sqlserver`. */
  static of(name: string): Engine {
    const engine = [Engine.POSTGRES, Engine.SQLSERVER].find((known) => known.name === name);
    if (engine === undefined) throw new Error(`engine must be postgres or sqlserver, not ${name}`);
    return engine;
  }

  /** The engine that a database of the CDK's says it has; undefined where it says none, as an imported one may. */
  static ofDatabase(engine: IClusterEngine | IInstanceEngine | undefined): Engine | undefined {
    if (engine === undefined) return undefined;
    if (/postgres/i.test(engine.engineType)) return Engine.POSTGRES;
    if (/^sqlserver/i.test(engine.engineType)) return Engine.SQLSERVER;
    throw new Error(`Relaybox runs on PostgreSQL and SQL Server; this database is ${engine.engineType}`);
  }

  /** `postgres` or `sqlserver`: the name in the functions' environment, and of their bundles' folder. */
  readonly name: 'postgres' | 'sqlserver';
  readonly defaultPort: number;

  private constructor(name: 'postgres' | 'sqlserver', defaultPort: number) {
    this.name = name;
    this.defaultPort = defaultPort;
  }
}
