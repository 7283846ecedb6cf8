/** What a handler may throw, that refuses to be looked at. */
export const odd: readonly (readonly [string, () => unknown])[] = [
  [
    'an accessor that throws',
    () => ({
      get code() {
        throw new Error('no');
      },
    }),
  ],
  [
    'a revoked Proxy',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    },
  ],
  [
    'an error whose cause throws',
    () =>
      Object.defineProperty(new Error('x'), 'cause', {
        get: () => {
          throw new Error('no');
        },
      }),
  ],
  [
    'one of ours by its code, whose message is no text',
    () => Object.assign(new Error('x'), { code: 'RELAYBOX_REJECTED', message: Symbol('x') }),
  ],
  ['nothing', () => undefined],
];
