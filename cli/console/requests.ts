import type { IncomingMessage } from 'node:http';
import type { Command } from '../../shared/operations/requests.ts';
import { errorAnswer, exit, exitCodeOf } from '../errors.ts';
import { withCode } from '../refusals.ts';
import type { Request, Target } from '../target.ts';
import { json, type Reply } from './reply.ts';

/** What the page may ask for, of all that operators may: it looks, decides and pauses, and never removes rows. */
const commands: readonly Command[] = [
  'status',
  'failed',
  'show',
  'requeue',
  'discard',
  'pause',
  'resume',
  'doctor',
];

/** Bytes of a request at most. One with the most ids that it may have (1000) takes 39 KB. */
const maxBytes = 64 * 1024;

/** Answers an operator's request that came by HTTP: the command line's own request, and its own answer. */
export async function answerRequest(request: IncomingMessage, target: Target): Promise<Reply> {
  if (!/^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')) return { status: 415 };
  const body = await bodyOf(request);
  if (body === null) return { status: 413 };
  const asked = parsed(body);
  if (asked === null) {
    return refusal(`a request is an object with a command, one of ${commands.join(', ')}`);
  }
  try {
    return json(200, await target.ask(asked));
  } catch (error) {
    const known = withCode(error);
    return json(statusOf(known), errorAnswer(known));
  }
}

async function bodyOf(request: IncomingMessage): Promise<string | null> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) return null;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** The fields are checked by whoever answers. The command is checked here: a function takes one without for a plain event. */
function parsed(body: string): Request<Command> | null {
  try {
    const value = JSON.parse(body) as Request<Command> | null;
    return value !== null && commands.includes(value.command) ? value : null;
  } catch {
    return null;
  }
}

function refusal(message: string): Reply {
  return json(400, { error: { code: 'RELAYBOX_REQUEST_REFUSED', message } });
}

function statusOf(error: unknown): number {
  const code = exitCodeOf(error);
  if (code === exit.usage) return 400;
  return code === exit.unreachable ? 503 : 500;
}
