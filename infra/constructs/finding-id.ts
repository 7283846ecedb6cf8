/**
 * A resolved value as cdk-nag writes it in the id of a finding: references in angle brackets, joins joined. So a finding
 * can be acknowledged by itself, and not its whole rule.
 */
export function flattened(resolved: unknown): string {
  if (typeof resolved !== 'object' || resolved === null) return String(resolved);
  const [[name, value] = []] = Object.entries(resolved);
  switch (name) {
    case 'Ref':
      return `<${String(value)}>`;
    case 'Fn::GetAtt':
      return `<${(value as string[]).join('.')}>`;
    case 'Fn::Join': {
      const [separator, parts] = value as [string, unknown[]];
      return parts.map(flattened).join(separator);
    }
    default:
      return JSON.stringify(resolved);
  }
}
