import { replacing } from '../../../local/demo/functions/replace.ts';
import type { Engine, LazyTransaction } from '../../../shared/lambda/engine.ts';
import type { Transaction } from '../../../shared/store/inbox-store.ts';
import { withCommit } from '../../support/engine/handling.ts';
import type { TestTx } from '../../support/engine/test-engine.ts';
import { engine } from './engine.ts';

type Committed = (transaction: Transaction<TestTx>) => Promise<void> | void;

/** What a handler has as `tx`, and the transaction behind it. */
const behind = new WeakMap<TestTx, LazyTransaction<TestTx>>();
const awaited = new WeakMap<TestTx, Committed>();

/** The engine. What happens between a handler's commit and whoever waits for its answer can be told to it. */
export const watchedEngine: Engine<TestTx> = {
  ...engine,
  connect(settings, pool) {
    const connections = engine.connect(settings, pool);
    const { inbox } = connections;
    const begin: typeof inbox.begin = async (limits) => {
      const transaction = await inbox.begin(limits);
      return withCommit(transaction, async () => {
        await transaction.commit();
        await awaited.get(transaction.tx)?.(transaction);
      });
    };
    return replacing(connections, { inbox: replacing(inbox, { begin }) });
  },
  lazy(source) {
    const tx = engine.lazy(source);
    behind.set(tx, source);
    return tx;
  },
};

/** Has this done once the handler's transaction has committed, before anybody hears of it. */
export async function onceCommitted(tx: TestTx, then: Committed): Promise<void> {
  const client = await behind.get(tx)?.client();
  if (client === undefined) throw new Error('that is no transaction of a handler of this engine');
  awaited.set(client, then);
}
