import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

const cookieName = 'relaybox-console';

/**
 * Who may come in: the one browser that brings the token of the printed link first. It gets a cookie for it, and the
 * token is worth nothing from then on.
 *
 * Everything lies below a path that nobody can guess, and the cookie is for that path only: browsers send cookies to
 * every port of a host, so that other servers on 127.0.0.1 would be given it otherwise.
 */
export class Gate {
  /** The secret path, `/…/`. */
  readonly base = `/${secret(16)}/`;
  readonly #token = secret(32);
  readonly #session = secret(32);
  #used = false;

  /** Path and query of the link that opens the console once. */
  get entrance(): string {
    return `${this.base}?token=${this.#token}`;
  }

  /** The cookie for the right token, the first time that it is brought; null for whatever else. */
  exchange(path: string): string | null {
    if (this.#used || !same(path, this.entrance)) return null;
    this.#used = true;
    return `${cookieName}=${this.#session}; Path=${this.base}; HttpOnly; SameSite=Strict`;
  }

  /** Whether the request brings the cookie. Another server may have set one of the same name beside it. */
  knows({ cookie = '' }: IncomingHttpHeaders): boolean {
    return cookie.split(';').some((pair) => same(pair.trim(), `${cookieName}=${this.#session}`));
  }
}

/** Whether a request does not come from this console's own page, by what browsers say of it. */
export function isForeign(method: string, headers: IncomingHttpHeaders, host: string): boolean {
  // A name of somebody else's may lead to 127.0.0.1 (DNS rebinding): then the page's origin would be theirs.
  if (headers.host !== host) return true;
  if (method === 'GET') return false;
  return (
    headers.origin !== `http://${host}` || (headers['sec-fetch-site'] ?? 'same-origin') !== 'same-origin'
  );
}

/** Whether a path is made like the link of a console, this one's or another's, or like its page's address. */
export function looksLikeLink(path: string): boolean {
  return /^\/[\w-]{22}\/(\?token=[\w-]*)?$/.test(path);
}

function secret(bytes: number): string {
  return randomBytes(bytes).toString('base64url');
}

/** Compares in a time that tells nothing. */
function same(given: string, right: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(right));
}
