import { storable } from '../../message/text.ts';
import type {
  ClaimedOutboxMessage,
  LaneLease,
  OutboxStore,
  Settlement,
  SettleOptions,
  SettleResult,
} from '../outbox-store.ts';
import type { Exclusive } from './exclusive.ts';

/** An attempt that is to be noted with its message. */
export interface Failure {
  readonly message: ClaimedOutboxMessage;
  /** Text that the database can store. */
  readonly reason: string;
  /** Null: it ends in Failed at once. */
  readonly retryInSeconds: number | null;
}

/** What one statement of a settle changed: ids, and buckets whose lease it extended or in which followers became due. */
export interface Settled {
  readonly settled: readonly string[];
  readonly ended: readonly string[];
  readonly buckets: readonly number[];
  readonly freed: readonly number[];
}

/** What an engine brings to settles of the outbox: one round trip each, which looks at the lease's token and extends it. */
export interface OutboxSettles {
  published(
    lease: LaneLease,
    messages: readonly ClaimedOutboxMessage[],
    options: SettleOptions,
  ): Promise<Settled>;
  failed(lease: LaneLease, failures: readonly Failure[], options: SettleOptions): Promise<Settled>;
}

/** Writes the outcomes of a batch: one round trip where all were published, one more where some failed. */
export function settling(settles: OutboxSettles, exclusive: Exclusive): OutboxStore['settle'] {
  return (lease, settlement, options) =>
    exclusive.run(lease.token, () => settle(settles, lease, settlement, options));
}

async function settle(
  settles: OutboxSettles,
  lease: LaneLease,
  { published, failed, rejected }: Settlement,
  options: SettleOptions,
): Promise<SettleResult> {
  const failures = [
    ...failed.map((each) => ({ ...each, reason: storable(each.reason) })),
    ...rejected.map((each) => ({ ...each, reason: storable(each.reason), retryInSeconds: null })),
  ];
  const answers: Settled[] = [];
  // A settlement without outcomes still extends the lease.
  if (published.length > 0 || failures.length === 0)
    answers.push(await settles.published(lease, published, options));
  if (failures.length > 0) answers.push(await settles.failed(lease, failures, options));
  const settled = new Set(answers.flatMap((answer) => answer.settled));
  const asked = [...published, ...failures.map(({ message }) => message)];
  return {
    settled: [...settled],
    ended: answers.flatMap((answer) => answer.ended),
    lost: asked.map(({ id }) => id).filter((id) => !settled.has(id)),
    buckets: answers.at(-1)?.buckets ?? [],
    freed: [...new Set(answers.flatMap((answer) => answer.freed))],
  };
}
