/** The ingest function. Its process dies where a message says: before it is stored, or after, before anybody hears of it. */
import { ingestFor } from '../../../shared/lambda/ingest.ts';
import { engine } from './engine.ts';
import { fatesOf, meet } from './points.ts';

const ingest = ingestFor(engine)();

export const handler: typeof ingest = async (event, context) => {
  const fates = fatesOf(event);
  for (const fate of fates) meet('entry', fate);
  const answer = await ingest(event, context);
  for (const fate of fates) meet('stored', fate);
  return answer;
};
