import { readFile } from 'node:fs/promises';
import type { Reply } from './reply.ts';

const styles = 'text/css; charset=utf-8';
const script = 'text/javascript; charset=utf-8';

/** Every file of the page that a browser may have, with its type; nothing else is ever read from the disk. */
export const pageFiles: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'style.css': styles,
  'dialogs.css': styles,
  'tables.css': styles,
  'parts.css': styles,
  'icon.svg': 'image/svg+xml',
  'main.js': script,
  'api.js': script,
  'decide.js': script,
  'dialog.js': script,
  'dom.js': script,
  'failed.js': script,
  'failed-choices.js': script,
  'failed-row.js': script,
  'fate.js': script,
  'findings.js': script,
  'format.js': script,
  'lanes.js': script,
  'message.js': script,
  'pause.js': script,
};

/** The page's files as replies, by name; the page itself has the empty one. Read once, at start. */
export async function readPage(): Promise<ReadonlyMap<string, Reply>> {
  const replies = new Map<string, Reply>();
  for (const [name, type] of Object.entries(pageFiles)) {
    const body = await readFile(new URL(`./page/${name}`, import.meta.url));
    replies.set(name === 'index.html' ? '' : name, { status: 200, headers: { 'content-type': type }, body });
  }
  return replies;
}
