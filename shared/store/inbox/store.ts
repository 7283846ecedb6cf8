import { setTimeout as sleep } from 'node:timers/promises';
import type { ClaimRequest, InboxStore, TransactionLimits } from '../inbox-store.ts';
import { numberOrUndefined } from '../values.ts';
import { type ClaimParts, claim } from './claim.ts';
import { type SeedIndex, secondConsumerCheck } from './second-consumer.ts';

/** Whose messages of which type. */
export type InboxLane = Pick<ClaimRequest, 'consumer' | 'messageType'>;

/** An engine's part of an inbox store: statements, and the transactions that they need. */
export interface InboxEngine<Tx>
  extends Pick<InboxStore<Tx>, 'ingest' | 'begin' | 'markProcessed' | 'markFailed' | 'release' | 'receive'> {
  readonly seedIndex: SeedIndex;
  /** Notes that the type has a handler, now. */
  noteClaim(lane: InboxLane): Promise<unknown>;
  claiming(request: ClaimRequest): ClaimParts;
  secondsToNextDue(lane: InboxLane): Promise<unknown>;
}

/** How long the database may take to begin and end a transaction, before it counts as away. */
const PROBE_MS = 5_000;

/** Limits of that transaction, which does nothing. */
const probing: TransactionLimits = { idleMs: PROBE_MS, lockMs: PROBE_MS, statementMs: PROBE_MS };

/** How often a process notes that a type has a handler. */
const NOTE_EVERY_MS = 60_000;

/** An inbox store on an engine's statements. It keeps no state that another process would need. */
export function inboxStore<Tx>(engine: InboxEngine<Tx>): InboxStore<Tx> {
  const refuseSecondConsumer = secondConsumerCheck(engine.seedIndex);
  const noted = new Map<string, number>();
  let keyedFirst = false;

  return {
    async ingest(rows) {
      await refuseSecondConsumer(rows.map(({ consumer }) => consumer));
      return await engine.ingest(rows);
    },

    async claim(request) {
      const { consumer, messageType } = request;
      const lane = JSON.stringify([consumer, messageType]);
      const last = noted.get(lane);
      if (last === undefined || performance.now() - last > NOTE_EVERY_MS) {
        await refuseSecondConsumer([consumer]);
        await engine.noteClaim(request);
        noted.set(lane, performance.now());
      }
      keyedFirst = !keyedFirst;
      return await claim(engine.claiming(request), request, keyedFirst);
    },

    async reachable() {
      return await Promise.race([takesWork(engine), sleep(PROBE_MS, false, { ref: false })]);
    },

    begin: (limits) => engine.begin(limits),
    markProcessed: (transaction, message) => engine.markProcessed(transaction, message),
    markFailed: (failures, options) => engine.markFailed(failures, options),
    release: (messages) => engine.release(messages),
    receive: (transaction, receipt) => engine.receive(transaction, receipt),
    secondsToNextDue: async (lane) => numberOrUndefined(await engine.secondsToNextDue(lane)),
  };
}

/** A transaction rather than a query: after a failover the old writer still answers, but takes no writes. */
async function takesWork<Tx>(database: Pick<InboxStore<Tx>, 'begin'>): Promise<boolean> {
  try {
    const transaction = await database.begin(probing);
    await transaction.rollback();
    return true;
  } catch {
    return false;
  }
}
