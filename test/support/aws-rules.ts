import type { SendMessageBatchCommandInput, SQSClient } from '@aws-sdk/client-sqs';

const refusedCharacters = /[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;
const groupId = /^[A-Za-z0-9!"#$%&'()*+,\-./:;<=>?@[\\\]^_`{|}~]{1,128}$/;

/**
 * Judges every batch that a client sends by SQS's documented rules, since an emulator takes what AWS refuses.
 * Written apart from the publisher, so that a mistake in one is not in the other.
 */
export function judgeSqs(client: SQSClient): void {
  client.middlewareStack.add(
    (next, context) => async (args) => {
      if (context['commandName'] === 'SendMessageBatchCommand')
        judge(args.input as SendMessageBatchCommandInput);
      return await next(args);
    },
    { step: 'initialize', name: 'judgeSqs' },
  );
}

function judge({ QueueUrl = '', Entries: entries = [] }: SendMessageBatchCommandInput): void {
  const fifo = QueueUrl.endsWith('.fifo');
  must(entries.length >= 1 && entries.length <= 10, `${entries.length} entries`);
  must(new Set(entries.map(({ Id }) => Id)).size === entries.length, 'ids are not distinct');
  let bytes = 0;
  for (const entry of entries) {
    const body = entry.MessageBody ?? '';
    must(/^[\w-]{1,80}$/.test(entry.Id ?? ''), `entry id ${entry.Id}`);
    must(body !== '', 'an empty body');
    must(!refusedCharacters.test(body), 'a body with characters that SQS refuses');
    bytes += Buffer.byteLength(body);
    const attributes = Object.entries(entry.MessageAttributes ?? {});
    must(attributes.length <= 10, `${attributes.length} attributes`);
    for (const [name, { DataType: type = '', StringValue: value = '' }] of attributes) {
      must(/^(?!aws\.|amazon\.|\.)(?!.*\.\.)[\w.-]{1,256}(?<!\.)$/i.test(name), `attribute name ${name}`);
      must(type === 'String' && value !== '', `attribute ${name} is empty`);
      must(!refusedCharacters.test(value), `attribute ${name} holds characters that SQS refuses`);
      bytes += Buffer.byteLength(name) + Buffer.byteLength(type) + Buffer.byteLength(value);
    }
    must(entry.MessageGroupId === undefined || groupId.test(entry.MessageGroupId), 'group id');
    must(!fifo || entry.MessageGroupId !== undefined, 'no group id on FIFO');
    must(fifo === (entry.MessageDeduplicationId !== undefined), 'deduplication id is for FIFO alone');
    must(!fifo || groupId.test(entry.MessageDeduplicationId ?? ''), 'deduplication id');
    must(!fifo || entry.DelaySeconds === undefined, 'a delay of its own on FIFO');
  }
  must(bytes <= 1_048_576, `${bytes} bytes`);
}

function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(`AWS would refuse this call: ${otherwise}`);
}
