import assert from 'node:assert/strict';
import { type CaseOf, sleep } from '../case.ts';
import { begin, type InboxHarness } from './harness.ts';

const receipt = { consumer: 'invoicing', source: 'shop', externalMessageId: 'm-1' };

/** The direct consumer's claim: the receipt commits with the work, or not at all. */
export const receipts: readonly CaseOf<InboxHarness>[] = [
  {
    promise: 2,
    name: 'a message is received once per consumer, source and exact id',
    async body({ store }) {
      const receive = async (other: Partial<typeof receipt> = {}): Promise<boolean> => {
        const transaction = await begin(store);
        const first = await store.receive(transaction, { ...receipt, ...other });
        await transaction.commit();
        return first;
      };
      assert.equal(await receive(), true);
      assert.equal(await receive(), false);
      const others = [
        { consumer: 'emails' },
        { source: 'billing' },
        { externalMessageId: 'M-1' },
        { externalMessageId: 'm-1 ' },
        // Where the three are joined without their lengths, these are the first one again.
        { source: 'sho', externalMessageId: 'pm-1' },
        { consumer: 'invoicings', source: 'hop' },
      ];
      for (const other of others) {
        assert.equal(await receive(other), true, JSON.stringify(other));
        assert.equal(await receive(other), false, JSON.stringify(other));
      }
    },
  },
  {
    promise: 2,
    name: 'a receipt commits with the work, or not at all',
    async body({ store, write, effects }) {
      const work = async (end: 'commit' | 'rollback'): Promise<boolean> => {
        const transaction = await begin(store);
        const first = await store.receive(transaction, receipt);
        if (first) await write(transaction.tx, 'handled');
        await transaction[end]();
        return first;
      };
      assert.equal(await work('rollback'), true);
      assert.deepEqual(await effects(), []);
      assert.equal(await work('commit'), true);
      assert.equal(await work('commit'), false);
      assert.deepEqual(await effects(), ['handled']);
    },
  },
  ...(['commit', 'rollback'] as const).map((end) => ({
    promise: 2,
    name: `a second delivery at the same moment waits for the first one’s ${end}`,
    async body({ store, another }: InboxHarness) {
      const first = await begin(store);
      assert.equal(await store.receive(first, receipt), true);
      const second = await begin(another);
      let answered = false;
      const waiting = another.receive(second, receipt).then((answer) => {
        answered = true;
        return answer;
      });
      await sleep(150);
      assert.equal(answered, false, 'it must wait');
      await first[end]();
      assert.equal(await waiting, end === 'rollback');
      await second.commit();
    },
  })),
];
