import { describe, expect, it } from 'vitest';
import {
  memoryOutbox,
  type OutboxFault,
  outboxFaults,
  outboxStoreContract,
} from '../../shared/testing/index.ts';

describe('the in-memory outbox store keeps the contract', () => {
  for (const c of outboxStoreContract(() => memoryOutbox())) it(c.name, c.run);
});

/** The case that is there for the fault; others may fail too. */
const noticedBy: Record<OutboxFault, string> = {
  'add is not atomic': 'a message of a transaction that commits is due, and not before',
  'duplicate add answers added': 'an id that is there already answers added: false',
  'settle ignores the token': 'a settle whose lease has run out changes nothing',
  'release ignores the token': 'a release with a token of before leaves the new holder alone',
  'settle does not extend the lease': 'a settle extends the lease',
  'leases are shared': 'leases asked for at the same moment never share a bucket',
  'expired leases stay taken': 'a lease that nobody gives back runs out',
  'bucket limit ignored': 'a lease takes no more buckets than asked for',
  'lanes are mixed': 'lanes are apart',
  'order by id': 'a read comes in the order of adding',
  'limit ignored': 'a read brings no more messages than asked for',
  'bytes ignored': 'a read is bounded by bytes',
  'a read begins where the last one ended': 'a message that commits late',
  'a read marks its rows': 'a read writes nothing to a message',
  'foreign claims ignored': "another program's running claim is respected",
  'failed is due at once': 'a message that waits a long time is not read meanwhile',
  'retries never end': 'retries used up end in Failed',
  'unavailable uses up a retry': 'an open lane is not due, its messages are not touched',
  'a lost lease is not reported': 'a settle whose buckets another has taken changes nothing',
  'discard is undone by a settle': 'a discard of a message on the wire is not undone',
  'a key is not held': 'followers of a waiting message leave what is due',
  'a key is stepped over and passed': 'nothing of a key is read while its first message waits',
  'followers are released highest first': 'hundreds of held followers are let go lowest first',
  'a blocked key goes on': 'Failed for good (rejected) its key waits',
  'a skipped key waits': 'Failed for good (rejected) its key goes on',
  'pause ignored': 'a lane that a person paused is not due',
  'an open lane is read': 'an open lane is read by its probe alone',
  'the probe is anybody’s': 'the probe of an open lane is one worker’s',
  'the probe is not fenced': 'a probe whose lease has run out goes to another',
};

describe('the outbox suite notices a store in which', () => {
  for (const fault of outboxFaults) {
    it.concurrent(`${fault} (${noticedBy[fault]})`, async () => {
      const [c, ...others] = outboxStoreContract(() => memoryOutbox([fault])).filter(({ name }) =>
        name.includes(noticedBy[fault]),
      );
      expect(c).toBeDefined();
      expect(others).toEqual([]);
      await expect(c?.run()).rejects.toThrow();
    });
  }
});
