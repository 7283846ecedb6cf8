import { Duration, RemovalPolicy, Validations } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as rds from 'aws-cdk-lib/aws-rds';
import * as secretsmanager from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';
import { Database } from '../constructs/database.ts';
import { Engine } from '../constructs/engine.ts';
import type { AppSettings, ExistingDatabaseSettings, NewDatabaseSettings } from '../context.ts';

/** The app's database, new or existing. */
export function appDatabase(scope: Construct, settings: AppSettings, vpc: ec2.IVpc | undefined): Database {
  const { database, engine } = settings;
  if (database.kind === 'existing') return existing(scope, database, Engine.of(engine), vpc);
  if (vpc === undefined) {
    throw new Error('relaybox:database must be existing where there is no VPC, as on an emulator');
  }
  const instance = new rds.DatabaseInstance(scope, 'Database', {
    ...(engine === 'postgres' ? postgres(database) : sqlServer()),
    ...sized(database),
    vpc,
    vpcSubnets: { subnetType: ec2.SubnetType.PRIVATE_ISOLATED },
  });
  Validations.of(instance).acknowledge({
    id: 'AwsSolutions-RDS11',
    reason:
      "A port of one's own hides nothing from who is in the VPC; the security group lets in the functions only",
  });
  if (engine === 'sqlserver') {
    Validations.of(instance).acknowledge({
      id: 'AwsSolutions-RDS3',
      reason: 'SQL Server Express has no standby; bring an instance of another edition where you need one',
    });
  }
  return Database.fromInstance(instance, { databaseName: database.databaseName });
}

function existing(
  scope: Construct,
  settings: ExistingDatabaseSettings,
  engine: Engine,
  vpc: ec2.IVpc | undefined,
): Database {
  const { databaseName, host, port, secretArn, securityGroupId, maxConnections, proxy, tls } = settings;
  const secret = secretsmanager.Secret.fromSecretCompleteArn(scope, 'DatabaseSecret', secretArn);
  return Database.fromSecret(secret, {
    databaseName,
    hostname: host,
    engine,
    proxy,
    tls,
    ...(port !== undefined && { port }),
    ...(maxConnections !== undefined && { maxConnections }),
    ...(vpc && { vpc }),
    ...(securityGroupId !== undefined && {
      securityGroups: [
        ec2.SecurityGroup.fromSecurityGroupId(scope, 'DatabaseSecurityGroup', securityGroupId),
      ],
    }),
  });
}

/** What losing the instance must not lose: a standby in another zone, backups, and no deletion by mistake. */
function sized({ instanceType, multiAz, storageGb }: NewDatabaseSettings) {
  return {
    credentials: rds.Credentials.fromUsername('relaybox'),
    // RDS makes the password, and changes it each week, without a function that would need a way to it.
    manageMasterUserPassword: true,
    instanceType: new ec2.InstanceType(instanceType),
    multiAz,
    allocatedStorage: storageGb,
    maxAllocatedStorage: storageGb * 5,
    storageType: rds.StorageType.GP3,
    storageEncrypted: true,
    backupRetention: Duration.days(14),
    deletionProtection: true,
    removalPolicy: RemovalPolicy.SNAPSHOT,
    autoMinorVersionUpgrade: true,
    publiclyAccessible: false,
    copyTagsToSnapshot: true,
  };
}

function postgres({ databaseName }: NewDatabaseSettings) {
  return {
    engine: rds.DatabaseInstanceEngine.postgres({ version: rds.PostgresEngineVersion.VER_17 }),
    databaseName,
    iamAuthentication: true,
  };
}

/** Express: no licence fee, 10 GB a database, no standby. Its database has to be created by hand, since RDS makes none. */
function sqlServer() {
  return {
    engine: rds.DatabaseInstanceEngine.sqlServerEx({
      version: rds.SqlServerEngineVersion.VER_16_00_4236_2_V1,
    }),
    licenseModel: rds.LicenseModel.LICENSE_INCLUDED,
  };
}
