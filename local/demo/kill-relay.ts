import type { LocalSystem } from '../system.ts';

/**
 * Kills a relay with SIGKILL in mid-batch: while a batch of its is on the wire and its buckets are leased.
 * `before`: the broker has not seen the call. `after`: the broker has accepted it, and the relay doesn't know.
 * @returns false where no relay published anything in time.
 */
export async function killRelayInMidBatch(
  { gates, host }: LocalSystem,
  when: 'before' | 'after',
  patienceMs: number,
): Promise<boolean> {
  return await new Promise((resolve) => {
    let instance = '';
    const remove = gates.eventBridge.inject({
      match: ({ target }) => target === 'AWSEvents.PutEvents',
      times: 1,
      onHit: ({ userAgent }) => {
        instance = /app\/(outbox-relay\.\d+)/.exec(userAgent)?.[1] ?? '';
      },
      fault: {
        kind: 'hold',
        when,
        until: async () => {
          clearTimeout(timer);
          resolve(host.kill('outbox-relay', instance));
          // The gate may see the dead process's socket end a moment later: until then it must not pass the call on.
          return 'break off';
        },
      },
    });
    const timer = setTimeout(() => {
      remove();
      resolve(false);
    }, patienceMs);
  });
}
