import { spawn } from 'node:child_process';

const openers: Readonly<Record<string, readonly [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
  linux: ['xdg-open'],
};

/** Opens the link in the person's browser, where there is one. Nothing is lost where not: the link is printed too. */
export function openBrowser(url: string): void {
  const [program, ...args] = openers[process.platform] ?? [];
  if (program === undefined) return;
  // Without a screen xdg-open would start a browser in the terminal, which uses the link up.
  if (process.platform === 'linux' && !process.env['DISPLAY'] && !process.env['WAYLAND_DISPLAY']) return;
  const child = spawn(program, [...args, url], { stdio: 'ignore', detached: true });
  child.once('error', () => undefined);
  child.unref();
}
