/** What AWS refuses of a PutEvents call: the whole call, or one entry. Limits are those of the classic bus. */

/** An entry as the SDK sends it. */
export interface PutEventsEntry {
  readonly Time?: number;
  readonly Source?: string;
  readonly DetailType?: string;
  readonly Detail?: string;
  readonly EventBusName?: string;
  readonly Resources?: readonly string[];
  readonly TraceHeader?: string;
}

/** An error of the whole call, or of one entry. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
}

export const putEventsLimits = {
  entries: 10,
  /** All entries of a call together must be smaller. Decimal, the stricter reading of "1 MB". */
  callBytes: 1_000_000,
  detailTypeCharacters: 128,
  sourceCharacters: 256,
  traceHeaderCharacters: 500,
  jsonDepth: 1000,
} as const;

/** Refuses the call as a whole, or answers undefined. */
export function refuseCall(entries: unknown): Refusal | undefined {
  if (!Array.isArray(entries) || entries.length < 1) {
    return constraint('entries', 'Member must have length greater than or equal to 1');
  }
  if (entries.length > putEventsLimits.entries) {
    return constraint('entries', `Member must have length less than or equal to ${putEventsLimits.entries}`);
  }
  const list = entries as readonly PutEventsEntry[];
  for (const [index, entry] of list.entries()) {
    if ((entry.TraceHeader?.length ?? 0) > putEventsLimits.traceHeaderCharacters) {
      return constraint(
        `entries.${index + 1}.member.traceHeader`,
        `Member must have length less than or equal to ${putEventsLimits.traceHeaderCharacters}`,
      );
    }
    // The bus's name has its own pattern; a name outside it is no missing bus but a malformed call.
    if (entry.EventBusName !== undefined && !/^(arn:[\w:/.-]+|[\w./-]+)$/.test(entry.EventBusName)) {
      return constraint(`entries.${index + 1}.member.eventBusName`, 'Member must satisfy the pattern');
    }
  }
  if (list.every((entry) => !entry.Source && !entry.DetailType && !entry.Detail)) {
    return {
      code: 'ValidationException',
      message: 'Parameter(s) Source, DetailType and Detail must be specified.',
    };
  }
  const bytes = list.reduce((sum, entry) => sum + entryBytes(entry), 0);
  if (bytes >= putEventsLimits.callBytes) {
    return {
      code: 'ValidationException',
      message: 'Total size of the entries in the request is over the limit.',
    };
  }
  return undefined;
}

/** Refuses one entry, or answers undefined. */
export function refuseEntry(entry: PutEventsEntry): Refusal | undefined {
  for (const field of ['Source', 'DetailType', 'Detail'] as const) {
    if (!entry[field]) return invalid(field, `${field} is a required argument.`);
  }
  const { Source = '', DetailType = '', Detail = '' } = entry;
  if (Source.startsWith('aws.')) {
    return { code: 'NotAuthorizedForSourceException', message: 'Not authorized for the source.' };
  }
  if (Source.length > putEventsLimits.sourceCharacters) {
    return invalid('Source', `Source must be at most ${putEventsLimits.sourceCharacters} characters.`);
  }
  if (DetailType.length > putEventsLimits.detailTypeCharacters) {
    return invalid(
      'DetailType',
      `DetailType must be at most ${putEventsLimits.detailTypeCharacters} characters.`,
    );
  }
  if (!isJsonObject(Detail)) return { code: 'MalformedDetail', message: 'Detail is malformed.' };
  return undefined;
}

/** An entry's size as AWS counts it. */
export function entryBytes(entry: PutEventsEntry): number {
  const texts = [entry.Source, entry.DetailType, entry.Detail, ...(entry.Resources ?? [])];
  const time = entry.Time === undefined ? 0 : 14;
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), time);
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value) && depthIsLegal(value);
  } catch {
    return false;
  }
}

/** Walks level by level, since a recursive walk is what deep JSON breaks. */
function depthIsLegal(value: object): boolean {
  let level: object[] = [value];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > putEventsLimits.jsonDepth) return false;
    level = level
      .flatMap((item) => Object.values(item))
      .filter((item) => item !== null && typeof item === 'object');
  }
  return true;
}

function constraint(path: string, rule: string): Refusal {
  return {
    code: 'ValidationException',
    message: `1 validation error detected: Value at '${path}' failed to satisfy constraint: ${rule}`,
  };
}

function invalid(field: string, reason: string): Refusal {
  return { code: 'InvalidArgument', message: `Parameter ${field} is not valid. Reason: ${reason}` };
}
