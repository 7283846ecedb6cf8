import { expect, test } from 'vitest';
import { errorText } from '../../shared/delivery/error-text.ts';

test.each([
  'postgres://ada:hunter2@host/db',
  'postgres://ada:hun@ter2@host/db',
  'postgres://ada:hun/ter2@host/db',
  'https://hunter2@host/path',
  'PGPASSWORD=hunter2 psql',
  'password=hunter2',
  'pwd = hunter2;Server=x',
  "password='hunter2 with spaces' x",
  'passphrase: "hunter2',
  '{"password":"a\\"hunter2"}',
  '{\\"password\\":\\"hunter2\\"}',
  'X-Api-Key: hunter2',
  'aws_secret_access_key = hunter2/K7MDENG',
  'SecretAccessKey: hunter2',
  'AWS_SESSION_TOKEN=hunter2',
  'authorization: Bearer hunter2hunter2',
  'sent with Basic hunter2hunter2==',
  'https://bucket/?X-Amz-Security-Token=hunter2&x=1',
])('a secret is not in the text of an error: %s', (message) => {
  expect(errorText(new Error(`before ${message}`))).toMatch(/^Error: before .*\*\*\*/);
  expect(errorText(new Error(message))).not.toContain('hunter2');
  expect(errorText(new Error(message))).not.toContain('ter2');
});

test.each([
  'connect ECONNREFUSED 127.0.0.1:5432',
  'password authentication failed for user "ada"',
  'queue https://sqs.eu-central-1.amazonaws.com/123/orders refused it; ask ada@example.org',
  'duplicate key value violates unique constraint "orders_pkey"',
])('what is no secret stays: %s', (message) => {
  expect(errorText(new Error(message))).toBe(`Error: ${message}`);
});

test('the work it takes grows with the length of the text, not with its square', () => {
  // The square of it would be minutes of the processor's time; its length is milliseconds, however busy the machine is.
  const size = 200_000;
  for (const piece of [
    'a',
    'a1+.-',
    '://',
    '://a:',
    'password',
    'password="',
    "pwd='\\",
    'secret :',
    'bearer ',
    'AKIA',
  ]) {
    const text = piece.repeat(size / piece.length);
    const began = process.cpuUsage();
    errorText(new Error(text));
    expect(process.cpuUsage(began).user / 1000, piece).toBeLessThan(2_000);
  }
});
