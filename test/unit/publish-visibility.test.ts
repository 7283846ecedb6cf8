import { SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, it } from 'vitest';
import { queueUrl } from '../../shared/publish/visibility.ts';

const urlOf = async (
  arn: string,
  options: ConstructorParameters<typeof SQSClient>[0] = {},
  endpoint?: string,
) => {
  const region = 'eu-central-1';
  return await queueUrl(arn, new SQSClient({ region, ...options }), endpoint);
};

describe('a queue’s URL, of its ARN', () => {
  it.each([
    ['arn:aws:sqs:eu-central-1:123456789012:orders.fifo', 'sqs.eu-central-1.amazonaws.com'],
    ['arn:aws-cn:sqs:cn-north-1:123456789012:orders', 'sqs.cn-north-1.amazonaws.com.cn'],
    ['arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders', 'sqs.us-gov-west-1.amazonaws.com'],
    ['arn:aws-eusc:sqs:eusc-de-east-1:123456789012:orders', 'sqs.eusc-de-east-1.amazonaws.eu'],
    ['arn:aws-iso-b:sqs:us-isob-east-1:123456789012:orders', 'sqs.us-isob-east-1.sc2s.sgov.gov'],
  ])('%s has the host of its region and partition', async (arn, host) => {
    const name = arn.split(':').at(-1);
    expect(await urlOf(arn)).toBe(`https://${host}/123456789012/${name}`);
  });

  it('has the host that the client was told to use', async () => {
    const arn = 'arn:aws:sqs:us-east-1:123456789012:orders';
    expect(await urlOf(arn, { useFipsEndpoint: true })).toMatch(/^https:\/\/sqs-fips\.us-east-1\./);
    expect(await urlOf(arn, { useDualstackEndpoint: true })).toBe(
      'https://sqs.us-east-1.api.aws/123456789012/orders',
    );
    const given = 'http://127.0.0.1:4566';
    expect(await urlOf(arn, {}, given)).toBe('http://127.0.0.1:4566/123456789012/orders');
    expect(await urlOf(arn, {}, `${given}/sqs/`)).toBe('http://127.0.0.1:4566/sqs/123456789012/orders');
  });

  it.each(['', 'orders', 'arn:aws:sns:us-east-1:1:orders', 'arn:aws:sqs:us-east-1:1:'])(
    'is not made up for %j',
    async (arn) => {
      await expect(urlOf(arn)).rejects.toThrow(/eventSourceARN/);
    },
  );
});
