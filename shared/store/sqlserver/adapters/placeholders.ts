/** Placeholders, question marks, and what may stand between them and is neither: bracketed and quoted text, and comments. */
export const pieces = /\[(?:[^\]]|\]\])*\]|N?'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|@p(\d+)\b|\?/g;

/** Names the parameters anew, e.g. `@p1` as `@0`, outside of quoted text. */
export function renamed(text: string, name: (number: number) => string): string {
  return text.replace(pieces, (piece, number?: string) =>
    number === undefined ? piece : name(Number(number)),
  );
}
