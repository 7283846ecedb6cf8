import type { RequestOf } from '../../operations/operations.ts';
import type { Selection } from '../../operations/requests.ts';
import type { Changed, FailedResponse, Refused } from '../../operations/responses.ts';

/** Outcomes of a decision about some rows. */
export interface Fates {
  readonly changed: readonly Changed[];
  readonly refused: readonly Refused[];
}

/** Decides about the rows of a selection: by id in whichever box they are, or a page of a lane's Failed ones. */
export async function bySelection(
  listFailed: (request: RequestOf<'failed'>) => Promise<FailedResponse>,
  select: Selection,
  decide: {
    readonly outbox: (ids: readonly string[]) => Promise<Fates>;
    readonly inbox: (ids: readonly string[]) => Promise<Fates>;
  },
): Promise<Fates & { readonly next: string | null }> {
  if ('lane' in select) {
    const { lane, limit, after } = select;
    const page = await listFailed({
      command: 'failed',
      box: lane.box,
      lane,
      limit,
      after,
    });
    const ids = page.messages.map(({ id }) => id);
    return { ...inOrder(ids, await decide[lane.box](ids)), next: page.next };
  }
  // As they are answered: people write ids as they come.
  const ids = select.ids.map((id) => id.toLowerCase());
  const outbox = await decide.outbox(ids);
  const inbox = await decide.inbox(ids);
  const changed = [...outbox.changed, ...inbox.changed];
  const refused = [...outbox.refused, ...inbox.refused];
  const seen = new Set([...changed, ...refused].map(({ id }) => id));
  const missing = ids
    .filter((id) => !seen.has(id))
    .map((id) => ({ id, reason: 'there is no such message, in the outbox or the inbox' }));
  return { ...inOrder(ids, { changed, refused: [...refused, ...missing] }), next: null };
}

/** A database finds rows in any order; a person reads the answer in the order of the question. */
function inOrder(ids: readonly string[], { changed, refused }: Fates): Fates {
  const places = new Map(ids.map((id, place) => [id, place]));
  const place = ({ id }: { readonly id: string }): number => places.get(id) ?? ids.length;
  return {
    changed: changed.toSorted((one, other) => place(one) - place(other)),
    refused: refused.toSorted((one, other) => place(one) - place(other)),
  };
}
