/** Loaded before everything else of a process (`--import`): its wall clock is off by CLOCK_OFF_MS from then on. */
const offMs = Number(process.env['CLOCK_OFF_MS'] ?? 0);

globalThis.Date = new Proxy(Date, {
  construct: (real, values: unknown[], called) =>
    Reflect.construct(real, values.length === 0 ? [real.now() + offMs] : values, called) as Date,
  apply: (real) => new real(real.now() + offMs).toString(),
  get(real, name, receiver) {
    if (name === 'now') return () => real.now() + offMs;
    return Reflect.get(real, name, receiver) as unknown;
  },
});
