const name =
  /pass(?:word|wd|phrase)|pwd|secret(?:[_-]?access)?(?:[_-]?key)?|(?:api|private)[_-]?key|(?:access|auth|refresh|security|session)[_-]?token|authorization|x-amz-(?:signature|credential)/;
const assigned = /\\?["']?\s{0,5}(?:=>?|:)\s{0,5}/;
const value = /\\"[^"]*"|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|(?:(?:bearer|basic)\s{1,5})?[^\s,;&"']+/;

/**
 * Each pattern begins with something that stands rarely, and is bounded from there: its time grows with the text's
 * length only, whatever the text is. So a name is not matched from its beginning: `PGPASSWORD=` is found by its end.
 */
const secrets: readonly [RegExp, string][] = [
  // Credentials in a URL, up to the last @ that may end them: a password may hold @ and / where nobody escaped them.
  [/:\/\/(?:[^\s/@:?#]*:\S{0,2000}|[^\s/@]+)@/g, '://***@'],
  // name=value, name: value and "name": "value", as drivers and services quote their settings.
  [new RegExp(`((?:${name.source})${assigned.source})(?:${value.source})`, 'gi'), '$1***'],
  [/\b(bearer|basic)\s{1,5}[a-z0-9+/._~=-]{8,}/gi, '$1 ***'],
  // Access key ids of AWS.
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, '***'],
];

/** Takes out of a text what looks like a secret: for columns, logs and terminals. */
export function withoutSecrets(text: string): string {
  return secrets.reduce((clean, [pattern, instead]) => clean.replace(pattern, instead), text);
}
