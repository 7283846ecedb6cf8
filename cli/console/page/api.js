/** The page's way to the console: the command line's own requests, as JSON. */

/** @import { Responses } from '../../../shared/operations/responses.ts' */
/** @import { About } from '../server.ts' */

/** Nobody answered, so that nobody knows what was done. */
export class NoAnswer extends Error {}

/**
 * Asks for one of the commands.
 * @template {keyof Responses} Name
 * @param {{ command: Name } & Record<string, unknown>} request
 * @returns {Promise<Responses[Name]>}
 * @throws {Error} with what the command line would say
 */
export async function ask(request) {
  const answer = await fetched('requests', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request),
  });
  return answer;
}

/**
 * Where this console is, and who is at it.
 * @returns {Promise<About>}
 */
export async function about() {
  return await fetched('about', {});
}

/**
 * @param {string} path
 * @param {RequestInit} init
 */
async function fetched(path, init) {
  const response = await fetch(path, { ...init, cache: 'no-store' }).catch(() => {
    throw new NoAnswer('The console doesn’t answer. Was it ended in its terminal?');
  });
  if (response.status === 401) {
    throw new NoAnswer('This console has ended. Open the link that the new one printed.');
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw new Error(answer.error?.message ?? `The console refused this (${response.status}).`);
}
