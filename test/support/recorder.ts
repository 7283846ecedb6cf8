import type { Logger, MetricName, Telemetry } from '../../shared/delivery/telemetry.ts';

/** Counts what was counted, and keeps what was logged. */
export function recorder(): Telemetry & {
  readonly counts: Partial<Record<MetricName, number>>;
  readonly lines: string[];
} {
  const counts: Partial<Record<MetricName, number>> = {};
  const lines: string[] = [];
  const log: Logger['info'] = (message, fields) =>
    void lines.push(`${message} ${JSON.stringify(fields ?? {})}`);
  return {
    counts,
    lines,
    logger: { debug: log, info: log, warn: log, error: log },
    count: (metric, value) => {
      counts[metric] = (counts[metric] ?? 0) + value;
    },
  };
}
