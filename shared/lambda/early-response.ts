/** What of middy's request is watched. */
interface WatchedRequest {
  response: unknown;
  error: unknown;
}

/**
 * Calls `leave` as soon as it is certain that middy will run no more hooks of this request's middlewares: another
 * middleware answered early, or one's `onError` threw. Middy tells a middleware neither, only its plugin hooks are told, and
 * those belong to whoever calls `middy()`. It does write both down on the request, where they are seen here.
 */
export function onLeaving(request: WatchedRequest, leave: () => void): void {
  watch(request, 'response', () => {
    if ('earlyResponse' in request) leave();
  });
  let errors = 0;
  watch(request, 'error', (error) => {
    // The first is what the `onError` hooks are called for. A second one is what a hook threw, which ends the chain.
    if (error !== undefined && ++errors > 1) leave();
  });
}

function watch<K extends keyof WatchedRequest>(
  request: WatchedRequest,
  property: K,
  seen: (value: WatchedRequest[K]) => void,
): void {
  let current = request[property];
  Object.defineProperty(request, property, {
    configurable: true,
    enumerable: true,
    get: () => current,
    set(value: WatchedRequest[K]) {
      current = value;
      seen(value);
    },
  });
}
