/**
 * Stands for a database where there is no server: anything can be asked of it, and nothing comes of it. The first lines
 * of a test file run although every test of it is skipped, so that the tests can be counted by name.
 */
export function inert<T extends object>(): T {
  const nothing = (): undefined => undefined;
  return new Proxy(nothing, {
    // Whoever awaits it gets it.
    get: (_, name) => (name === 'then' ? undefined : inert()),
    apply: () => Promise.resolve(inert()),
  }) as unknown as T;
}
