import { replacing } from '../../../local/demo/functions/replace.ts';
import type { Engine, LazyTransaction } from '../../../shared/lambda/engine.ts';
import { withCommit } from '../../support/engine/handling.ts';
import type { TestTx } from '../../support/engine/test-engine.ts';
import { engine } from './engine.ts';
import { type Fate, isFirst, meet } from './points.ts';

/** What a handler has as `tx`, and the transaction behind it. */
const behind = new WeakMap<TestTx, LazyTransaction<TestTx>>();
const fates = new WeakMap<TestTx, Fate>();

/** The engine. A handler's commit goes as its message says. */
export const fatefulEngine: Engine<TestTx> = {
  ...engine,
  connect(settings, pool) {
    const connections = engine.connect(settings, pool);
    const { inbox } = connections;
    const begin: typeof inbox.begin = async (limits) => {
      const transaction = await inbox.begin(limits);
      return withCommit(transaction, async () => {
        const fate = fates.get(transaction.tx) ?? { n: -1 };
        if (happens('uncommitted', fate)) await transaction.destroy();
        await transaction.commit();
        meet('committed', fate);
        if (!happens('unanswered', fate)) return;
        await transaction.destroy();
        throw Object.assign(new Error('the connection to the database broke'), { code: 'ECONNRESET' });
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

/**
 * Has the handler's commit go as its message says: the process is killed after it (`committed`), or the connection is gone
 * before it (`uncommitted`) or before its answer (`unanswered`).
 */
export async function commitAsTold(tx: TestTx, fate: Fate): Promise<void> {
  const client = await behind.get(tx)?.client();
  if (client === undefined) throw new Error('that is no transaction of a handler of this engine');
  fates.set(client, fate);
}

function happens(place: 'uncommitted' | 'unanswered', { n, at }: Fate): boolean {
  return at === place && isFirst(`${place}-${n}`);
}
