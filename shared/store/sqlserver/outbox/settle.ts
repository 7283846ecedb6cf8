import { storable } from '../../../message/text.ts';
import type { Exclusive } from '../../outbox/exclusive.ts';
import { mayHaveFollowers } from '../../outbox/message.ts';
import type {
  ClaimedOutboxMessage,
  FailedAttempt,
  LaneLease,
  RejectedMessage,
  Settlement,
  SettleOptions,
  SettleResult,
} from '../../outbox-store.ts';
import type { Database } from '../database.ts';
import type { Names } from '../names.ts';
import { failedSql, publishedSql } from '../sql/outbox-settle.ts';

type Kind = 'bucket' | 'settled' | 'ended' | 'freed';
type Answer = Readonly<Record<Kind, readonly string[]>>;

/** Writes the outcomes of a batch: one round trip where all were published, one more where some failed. */
export class OutboxSettler {
  readonly #database: Database;
  readonly #names: Names;
  readonly #exclusive: Exclusive;

  constructor(database: Database, names: Names, parts: { readonly exclusive: Exclusive }) {
    this.#database = database;
    this.#names = names;
    this.#exclusive = parts.exclusive;
  }

  async settle(lease: LaneLease, settlement: Settlement, options: SettleOptions): Promise<SettleResult> {
    const { published, failed, rejected } = settlement;
    const asked = [...published, ...[...failed, ...rejected].map(({ message }) => message)];
    return await this.#exclusive.run(lease.token, async () => {
      const answers: Answer[] = [];
      // A settlement without outcomes still extends the lease.
      if (published.length > 0 || asked.length === 0)
        answers.push(await this.#published(lease, published, options));
      if (asked.length > published.length) answers.push(await this.#failed(lease, failed, rejected, options));
      const all = (kind: Kind): string[] => answers.flatMap((answer) => answer[kind]);
      const settled = new Set(all('settled'));
      return {
        settled: [...settled],
        ended: all('ended'),
        lost: asked.map(({ id }) => id).filter((id) => !settled.has(id)),
        buckets: (answers.at(-1)?.bucket ?? []).map(Number),
        freed: [...new Set(all('freed').map(Number))],
      };
    });
  }

  async #published(
    lease: LaneLease,
    published: readonly ClaimedOutboxMessage[],
    { afterSuccess, leaseMs }: SettleOptions,
  ): Promise<Answer> {
    return await this.#run(publishedSql(this.#names, { afterSuccess }), lease, leaseMs, published.map(given));
  }

  async #failed(
    lease: LaneLease,
    failed: readonly FailedAttempt[],
    rejected: readonly RejectedMessage[],
    { leaseMs, onFailedKey }: SettleOptions,
  ): Promise<Answer> {
    const outcomes = [
      ...failed.map(({ message, reason, retryInSeconds }) => ({
        ...given(message),
        r: storable(reason),
        ms: Math.ceil(retryInSeconds * 1000),
      })),
      ...rejected.map(({ message, reason }) => ({ ...given(message), r: storable(reason), ms: null })),
    ];
    return await this.#run(
      failedSql(this.#names, { block: onFailedKey === 'block' }),
      lease,
      leaseMs,
      outcomes,
    );
  }

  async #run(text: string, lease: LaneLease, leaseMs: number, outcomes: readonly unknown[]): Promise<Answer> {
    const { rows } = await this.#database.query(text, [
      lease.destination,
      JSON.stringify(lease.buckets),
      lease.token,
      leaseMs,
      JSON.stringify(outcomes),
    ]);
    const answer: Record<Kind, string[]> = { bucket: [], settled: [], ended: [], freed: [] };
    for (const row of rows) answer[row['kind'] as Kind].push(String(row['value']));
    return answer;
  }
}

/** `f`: its end may let followers of its key go. */
function given(message: ClaimedOutboxMessage): { readonly id: string; readonly f: 0 | 1 } {
  return { id: message.id, f: mayHaveFollowers(message) ? 1 : 0 };
}
