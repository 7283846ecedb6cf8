import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';

/** What a person at a keyboard would use the AWS command line for. */
export class Aws {
  readonly #lambda: LambdaClient;
  readonly #secrets: SecretsManagerClient;
  readonly #sqs: SQSClient;

  constructor(endpoint: string) {
    const config = { endpoint, region, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
    this.#lambda = new LambdaClient(config);
    this.#secrets = new SecretsManagerClient(config);
    this.#sqs = new SQSClient(config);
  }

  /** Invokes a function and waits for its answer. */
  async invoke(name: string, payload: unknown): Promise<unknown> {
    const Payload = new TextEncoder().encode(JSON.stringify(payload));
    const output = await this.#lambda.send(new InvokeCommand({ FunctionName: name, Payload }));
    const text = new TextDecoder().decode(output.Payload);
    if (output.FunctionError !== undefined) throw new Error(`${name} failed: ${text}`);
    return JSON.parse(text) as unknown;
  }

  /** Sends a message as another service would. */
  async send(queueUrl: string, body: string, attributes: Readonly<Record<string, string>>): Promise<void> {
    const texts = Object.entries(attributes).map(
      ([name, StringValue]) => [name, { DataType: 'String', StringValue }] as const,
    );
    await this.#sqs.send(
      new SendMessageCommand({
        QueueUrl: queueUrl,
        MessageBody: body,
        MessageAttributes: Object.fromEntries(texts),
      }),
    );
  }

  /** Stores a secret and answers its ARN. One of that name from an earlier run is replaced. */
  async secret(name: string, value: unknown): Promise<string> {
    await this.#secrets
      .send(new DeleteSecretCommand({ SecretId: name, ForceDeleteWithoutRecovery: true }))
      .catch(() => undefined);
    const SecretString = JSON.stringify(value);
    const { ARN } = await this.#secrets.send(new CreateSecretCommand({ Name: name, SecretString }));
    if (ARN === undefined) throw new Error('the secret has no ARN');
    return ARN;
  }

  /** Closes the connections. */
  close(): void {
    this.#lambda.destroy();
    this.#secrets.destroy();
    this.#sqs.destroy();
  }
}

/** The region that the emulator is asked for. */
export const region = 'us-east-1';

/** The environment of a program that is to talk to the emulator, as the SDK and the CDK read it. */
export function awsEnvironment(endpoint: string): Record<string, string> {
  return {
    AWS_ENDPOINT_URL: endpoint,
    AWS_ENDPOINT_URL_S3: endpoint,
    AWS_REGION: region,
    AWS_DEFAULT_REGION: region,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    CDK_DEFAULT_ACCOUNT: '000000000000',
    CDK_DEFAULT_REGION: region,
  };
}
