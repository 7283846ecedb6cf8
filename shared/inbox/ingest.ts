import { silent, type Telemetry } from '../delivery/telemetry.ts';
import { UNREADABLE_TYPE } from '../message/envelope/names.ts';
import { type Mapping, readRecord, type SqsRecord, unreadable } from '../message/envelope/read.ts';
import type { InboxStore, IngestResult, NewInboxRow } from '../store/inbox-store.ts';
import { refusesRow } from './database-errors.ts';
import { messageRow, type RowOptions, unreadableRow } from './ingest-rows.ts';

/** How a batch of records is stored. */
export interface IngestOptions extends RowOptions {
  readonly store: Pick<InboxStore, 'ingest'>;
  /** For records in an envelope of your own. */
  readonly mapping?: Mapping | undefined;
  /** Wakes the handlers of the types added. Best effort: what it throws is logged. */
  readonly wake?: ((messageTypes: readonly string[]) => Promise<void>) | undefined;
  readonly telemetry?: Telemetry | undefined;
}

/** The answer that Lambda's SQS trigger expects: what is named here comes again, everything else is deleted. */
export interface SqsBatchResponse {
  readonly batchItemFailures: { readonly itemIdentifier: string }[];
}

/**
 * Stores a batch of SQS records once each, in one statement. Duplicates fall out; what can't be understood becomes a
 * Failed row with its raw body; only what can't be stored is reported, to come again.
 */
export async function ingest(
  records: readonly SqsRecord[],
  options: IngestOptions,
): Promise<SqsBatchResponse> {
  const run = new Ingest(options);
  await run.store(records.map((record) => ({ record, row: run.toRow(record) })));
  await run.wake();
  return { batchItemFailures: [...run.failures].map((itemIdentifier) => ({ itemIdentifier })) };
}

interface Item {
  readonly record: SqsRecord;
  readonly row: NewInboxRow;
}

class Ingest {
  /** SQS ids of records that must come again. */
  readonly failures = new Set<string>();
  readonly #options: IngestOptions;
  readonly #telemetry: Telemetry;
  readonly #added = new Set<string>();
  /** FIFO groups of which a record was not stored: later ones must not pass it. */
  readonly #stopped = new Set<string>();

  constructor(options: IngestOptions) {
    this.#options = options;
    this.#telemetry = options.telemetry ?? silent;
  }

  toRow(record: SqsRecord): NewInboxRow {
    const result = readRecord(record, this.#options.mapping);
    if ('unreadable' in result) {
      this.#telemetry.logger.warn('A record could not be read and is kept as a Failed message', {
        messageId: record.messageId,
        reason: result.unreadable.reason,
      });
      return unreadableRow(result.unreadable, this.#options);
    }
    return messageRow(result.message, this.#options);
  }

  /**
   * Stores the items in one statement. Where the database refuses it for what is in it, the batch is halved until the
   * row at fault stands alone; where the database can't take anything now, all of it comes again.
   */
  async store(items: readonly Item[]): Promise<void> {
    const open = items.filter(({ record }) => !this.#stopped.has(groupOf(record)));
    for (const { record } of items)
      if (this.#stopped.has(groupOf(record))) this.failures.add(record.messageId);
    if (open.length === 0) return;
    try {
      this.#count(open, await this.#options.store.ingest(open.map(({ row }) => row)));
    } catch (error) {
      if (!refusesRow(error)) this.#report(open, error);
      else if (open.length > 1) {
        const middle = Math.ceil(open.length / 2);
        await this.store(open.slice(0, middle));
        await this.store(open.slice(middle));
      } else await this.#storeRaw(open[0] as Item, error);
    }
  }

  /** Wakes what was added. Never fails the batch: the rows are there, and a sweep finds them. */
  async wake(): Promise<void> {
    if (this.#added.size === 0 || !this.#options.wake) return;
    try {
      await this.#options.wake([...this.#added]);
    } catch (error) {
      this.#telemetry.logger.debug('A wake failed; the sweep will find the messages', {
        error: String(error),
      });
    }
  }

  /** The database refused this row: it is kept as one that was not understood, and if even that fails, it comes again. */
  async #storeRaw(item: Item, error: unknown): Promise<void> {
    if (item.row.messageType === UNREADABLE_TYPE) return this.#report([item], error);
    const kept = unreadable(item.record, `the database refused it: ${messageOf(error)}`);
    await this.store([{ record: item.record, row: unreadableRow(kept, this.#options) }]);
  }

  #count(items: readonly Item[], results: readonly IngestResult[]): void {
    const { logger } = this.#telemetry;
    for (const [index, { row }] of items.entries()) {
      const result = results[index];
      const fields = { id: row.externalMessageId, source: row.source, messageType: row.messageType };
      if (result?.differs) {
        this.#telemetry.count('DuplicatesThatDiffer', 1, row.messageType);
        logger.warn('Another payload came under an id that is stored already; it was not stored', fields);
      } else if (result && !result.added) {
        this.#telemetry.count('Duplicates', 1, row.messageType);
        logger.info('A message that is stored already came again', fields);
      } else if (row.failedReason === null) {
        this.#telemetry.count('Ingested', 1, row.messageType);
        this.#added.add(row.messageType);
      } else {
        const metric = row.messageType === UNREADABLE_TYPE ? 'Unreadable' : 'HopLimit';
        this.#telemetry.count(metric, 1, row.messageType);
      }
    }
  }

  #report(items: readonly Item[], error: unknown): void {
    this.#telemetry.logger.error('Records could not be stored and will come again', {
      records: items.length,
      error: messageOf(error),
    });
    for (const { record } of items) {
      this.failures.add(record.messageId);
      if (isFifo(record)) this.#stopped.add(groupOf(record));
    }
  }
}

function isFifo(record: SqsRecord): boolean {
  return record.eventSourceARN?.endsWith('.fifo') ?? record.attributes?.MessageGroupId !== undefined;
}

function groupOf(record: SqsRecord): string {
  return record.attributes?.MessageGroupId ?? '';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
