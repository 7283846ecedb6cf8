/** The part of EventBridge's pattern language that the local bus knows: exact values of two fields. */
export interface EventPattern {
  readonly source?: readonly string[];
  readonly 'detail-type'?: readonly string[];
}

/** Whether an event meets a pattern: every field named must have one of its values. */
export function matches(pattern: EventPattern, event: { source: string; detailType: string }): boolean {
  return (
    (pattern.source === undefined || pattern.source.includes(event.source)) &&
    (pattern['detail-type'] === undefined || pattern['detail-type'].includes(event.detailType))
  );
}
