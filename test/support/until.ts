/** Waits until something holds, looking every 20 ms; fails with what it was last. */
export async function until<T>(
  look: () => Promise<T> | T,
  holds: (value: T) => boolean,
  ms = 10_000,
): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const value = await look();
    if (holds(value)) return value;
    if (Date.now() > end) throw new Error(`still not so after ${ms} ms: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
