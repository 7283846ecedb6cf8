import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UsageError } from '../errors.ts';
import type { Target } from '../target.ts';
import { Gate, isForeign, looksLikeLink } from './gate.ts';
import { readPage } from './page.ts';
import { json, type Reply, send } from './reply.ts';
import { answerRequest } from './requests.ts';

/** What the page is told about where it is. */
export interface About {
  /** The database or function, without credentials. */
  readonly where: string;
  /** A function wakes the relay and the handlers after a decision; a database leaves that to their sweep. */
  readonly kind: 'database' | 'function';
  /** Who decides, unless the operator says otherwise. */
  readonly by: string;
}

/** A console that runs. */
export interface RunningConsole {
  /** The link that opens it, once. */
  readonly url: string;
  /** Takes no more requests, waits for those under way, and closes every connection. */
  end(): Promise<void>;
}

/** Only this machine: never a name, which may lead elsewhere. */
const address = '127.0.0.1';

/**
 * Serves the operators' page and its requests on 127.0.0.1, to the one browser that opens its link. Logs nothing.
 * @throws {UsageError} where the port can't be had
 */
export async function startConsole(
  target: Target,
  about: About,
  options: { readonly port: number },
): Promise<RunningConsole> {
  const gate = new Gate();
  const page = await readPage();
  const underWay = new Set<Promise<unknown>>();
  let host = '';

  /** Refusals have nothing in them, but for whoever brings a link: a stranger learns that somebody listens, and no more. */
  async function answer(request: IncomingMessage): Promise<Reply> {
    const { method = '', url: path = '', headers } = request;
    if (isForeign(method, headers, host)) return { status: 403 };
    if (!gate.knows(headers)) return method === 'GET' ? entered(gate, path) : { status: 401 };
    if (!path.startsWith(gate.base)) return { status: 404 };
    const name = path.slice(gate.base.length);
    if (name === 'requests') {
      return method === 'POST' ? await answerRequest(request, target) : notAllowed('POST');
    }
    if (name.startsWith('?token=')) return onward(gate);
    const found = name === 'about' ? json(200, about) : page.get(name);
    if (found === undefined) return { status: 404 };
    return method === 'GET' ? found : notAllowed('GET');
  }

  const server = createServer({ headersTimeout: 10_000, requestTimeout: 20_000 }, (request, response) => {
    const work = answer(request)
      // A connection that broke off in the middle of its request: nobody is there to be told.
      .catch((): Reply => ({ status: 400 }))
      .then((reply) => send(response, reply))
      .finally(() => underWay.delete(work));
    underWay.add(work);
  });
  const port = await listen(server, options.port);
  host = `${address}:${port}`;
  return {
    url: `http://${host}${gate.entrance}`,
    async end() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await Promise.allSettled(underWay);
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The page's own address, without the token: it is to stand in no history and no screenshot. */
function onward(gate: Gate, cookie?: string): Reply {
  const headers = cookie === undefined ? {} : { 'set-cookie': cookie };
  return { status: 303, headers: { location: gate.base, ...headers } };
}

function entered(gate: Gate, path: string): Reply {
  const cookie = gate.exchange(path);
  if (cookie !== null) return onward(gate, cookie);
  return looksLikeLink(path) ? ended : { status: 401 };
}

/**
 * What a browser shows of a link, or of the page's address, that lets nobody in. It is one text for this console's and
 * for an earlier one's, so that it tells nobody whether a path was right.
 */
const ended: Reply = {
  status: 401,
  headers: { 'content-type': 'text/plain; charset=utf-8' },
  body: 'This link of relaybox console was used already, or its console has ended.\nA link works once. Start relaybox console anew, and open the link that it prints.\n',
};

function notAllowed(allow: string): Reply {
  return { status: 405, headers: { allow } };
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(new UsageError(`--port: ${port} can't be had (${error.code ?? error.message}): name another`));
    });
    server.listen(port, address, resolve);
  });
  return (server.address() as AddressInfo).port;
}
