import { describe, expect, it } from 'vitest';
import { type InboxFault, inboxFaults, inboxStoreContract, memoryInbox } from '../../shared/testing/index.ts';

describe('the in-memory inbox store keeps the contract', () => {
  for (const c of inboxStoreContract(() => memoryInbox())) it(c.name, c.run);
});

/** The case that is there for the fault; others may fail too. */
const noticedBy: Record<InboxFault, string> = {
  'dedup folds case': 'ids are compared exactly',
  'dedup ignores trailing spaces': 'ids are compared exactly',
  'dedup ignores the consumer': 'consumers are apart',
  'duplicates within a batch are added': 'a message that is twice in one batch is stored once',
  'a duplicate of a Processed message is added': 'a message that is there already is a duplicate',
  'claims are shared': 'claims at the same moment never share a message',
  'lanes are mixed': 'a claim brings messages of its type and consumer only',
  'sources are mixed': 'a claim of one source brings no other’s messages',
  'bytes ignored': 'a claim is bounded by count and by bytes',
  'attempt not counted in the claim': 'an attempt is counted by its claim',
  'release counts the attempt': 'a message given back is due at once, and its attempt is not counted',
  'expired claimed in company': 'messages whose lease ran out are claimed alone',
  'lost leases never end': 'a message that kills its function each time ends in Failed',
  'expired claims stay taken': 'messages whose lease ran out are claimed alone',
  'processed ignores the token': 'a late Processed mark does not overwrite what another decided',
  'processed survives the rollback': 'a transaction left idle beyond its limit cannot commit',
  'failed ignores the token': 'a failure whose lease is lost changes nothing',
  'failed is due at once': 'a failed message waits its time',
  'retries never end': 'retries used up end in Failed',
  'keys are ordered within a type only': 'a key is in order across message types',
  'a key is in two hands after a requeue':
    'a Failed message that is requeued while a later one of its key runs',
  'a blocked key goes on': 'Failed for good (rejected) its key waits',
  'a skipped key waits': 'Failed for good (rejected) its key goes on',
  'pause ignored': 'a message type that a person paused is not claimed',
  'receipts are not kept': 'a message is received once per consumer',
  'receipts do not wait': 'waits for the first one’s commit',
  'a lost connection passes for an outage': 'a connection that is lost is no outage',
};

describe('the inbox suite notices a store in which', () => {
  for (const fault of inboxFaults) {
    it.concurrent(`${fault} (${noticedBy[fault]})`, async () => {
      const [c, ...others] = inboxStoreContract(() => memoryInbox([fault])).filter(({ name }) =>
        name.includes(noticedBy[fault]),
      );
      expect(c).toBeDefined();
      expect(others).toEqual([]);
      await expect(c?.run()).rejects.toThrow();
    });
  }
});
