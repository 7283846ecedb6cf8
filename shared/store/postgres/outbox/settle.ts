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

/** Writes the outcomes of a batch: one statement where all were published, one more where some failed. */
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
      const answers: Record<string, unknown>[] = [];
      // A settlement without outcomes still extends the lease.
      if (published.length > 0 || asked.length === 0)
        answers.push(await this.#published(lease, published, options));
      if (asked.length > published.length) answers.push(await this.#failed(lease, failed, rejected, options));
      const all = <T>(column: string): T[] => answers.flatMap((answer) => (answer[column] ?? []) as T[]);
      const settled = new Set(all<string>('settled'));
      return {
        settled: [...settled],
        ended: all<string>('ended'),
        lost: asked.map(({ id }) => id).filter((id) => !settled.has(id)),
        buckets: (answers.at(-1)?.['buckets'] ?? []) as number[],
        freed: [...new Set(all<number>('freed'))],
      };
    });
  }

  async #published(
    lease: LaneLease,
    published: readonly ClaimedOutboxMessage[],
    { afterSuccess, leaseMs }: SettleOptions,
  ): Promise<Record<string, unknown>> {
    const release = followed(published);
    return await this.#one(publishedSql(this.#names, { afterSuccess, release: release.length > 0 }), [
      lease.destination,
      lease.buckets,
      lease.token,
      leaseMs,
      published.map(({ id }) => id),
      ...(release.length > 0 ? [release] : []),
    ]);
  }

  async #failed(
    lease: LaneLease,
    failed: readonly FailedAttempt[],
    rejected: readonly RejectedMessage[],
    { leaseMs, onFailedKey }: SettleOptions,
  ): Promise<Record<string, unknown>> {
    const given = [
      ...failed.map(({ message, reason, retryInSeconds }) => ({ message, reason, retryInSeconds })),
      ...rejected.map(({ message, reason }) => ({ message, reason, retryInSeconds: null })),
    ];
    const block = onFailedKey === 'block';
    const release = block ? [] : followed(given.map(({ message }) => message));
    return await this.#one(failedSql(this.#names, { block, release: release.length > 0 }), [
      lease.destination,
      lease.buckets,
      lease.token,
      leaseMs,
      given.map(({ message }) => message.id),
      given.map(({ reason }) => storable(reason)),
      given.map(({ retryInSeconds }) => retryInSeconds),
      ...(release.length > 0 ? [release] : []),
    ]);
  }

  async #one(text: string, values: unknown[]): Promise<Record<string, unknown>> {
    const { rows } = await this.#database.query(text, values);
    return rows[0] ?? {};
  }
}

function followed(messages: readonly ClaimedOutboxMessage[]): string[] {
  return messages.filter(mayHaveFollowers).map(({ id }) => id);
}
