/**
 * Calls `stop` at the first Ctrl-C or SIGTERM, and ends the process at the second. Answers how to take that back.
 * Even then nothing stays behind: functions and database end when the channel to this process closes.
 */
export function onStopSignal(stop: () => void): () => void {
  let asked = false;
  const listener = (): void => {
    if (asked) process.exit(130);
    asked = true;
    stop();
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}
