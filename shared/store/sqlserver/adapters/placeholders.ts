/** What may stand between placeholders and is no placeholder: bracketed and quoted text, and comments. */
const pieces = /\[(?:[^\]]|\]\])*\]|N?'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|@p(\d+)\b|\?/g;

/** Names the parameters anew, e.g. `@p1` as `@0`, outside of quoted text. */
export function renamed(text: string, name: (number: number) => string): string {
  return text.replace(pieces, (piece, number?: string) =>
    number === undefined ? piece : name(Number(number)),
  );
}

/** Turns numbered parameters into question marks by position, a value given again where it is used again. */
export function positional(
  text: string,
  values: readonly unknown[],
): { readonly sql: string; readonly bindings: unknown[] } {
  const bindings: unknown[] = [];
  const sql = text.replace(pieces, (piece, number?: string) => {
    // Knex reads a question mark as a placeholder even in quoted text.
    if (number === undefined) return piece.replaceAll('?', '\\?');
    bindings.push(values[Number(number) - 1]);
    return '?';
  });
  return { sql, bindings };
}
