import type { CostPart } from './idle.ts';

/** The estimate as a table in Markdown, with its sum. */
export function costTable(parts: readonly CostPart[]): string {
  const rows = parts.map(({ name, how, dollars }) => [name, how, money(dollars)]);
  return table(
    ['part', 'how it comes about', '$ a month'],
    [...rows, ['**together**', '', bold(totalOf(parts))]],
  );
}

/** The sum of what has a price. */
export function totalOf(parts: readonly CostPart[]): number {
  return parts.reduce((sum, { dollars }) => sum + (dollars ?? 0), 0);
}

/** Rows in Markdown; the last column holds figures. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = head.map((_, index) => (index === head.length - 1 ? '---:' : '---'));
  return [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** `14.60`; what has no price here is left open. */
export function money(dollars: number | undefined): string {
  return dollars === undefined ? '?' : dollars.toFixed(2);
}

function bold(dollars: number): string {
  return `**${money(dollars)}**`;
}

/** `0.045`; what is tiny by the piece is given by the million. */
export function priceText(dollars: number): string {
  return dollars < 0.001 ? `${Number((dollars * 1e6).toFixed(4))} a million` : String(dollars);
}
