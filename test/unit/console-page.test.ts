import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { pageFiles } from '../../cli/console/page.ts';
import { age, amount, counted, laneText, printable, shortened } from '../../cli/output.ts';
import type { LaneName } from '../../shared/operations/requests.ts';

const folder = new URL('../../cli/console/page/', import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, folder), 'utf8');
const names = globSync('*.{html,css,js,svg}', { cwd: fileURLToPath(folder) });
const scripts = names.filter((name) => name.endsWith('.js'));
const html = read('index.html');

describe('the page', () => {
  it('is served whole: every file of the folder is on the list, and no other', () => {
    expect(Object.keys(pageFiles).toSorted()).toEqual(names.toSorted());
    expect(scripts.length).toBeGreaterThan(5);
  });

  it('has no script and no style in its HTML, and loads nothing from elsewhere', () => {
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/i);
    for (const name of names) {
      const text = read(name).replaceAll('http://www.w3.org/2000/svg', '');
      expect(text, name).not.toMatch(/(?:https?:)?\/\/\w+\.|@import\s+url|url\(/);
    }
    const links = [...html.matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map((match) => match[1] ?? '');
    expect(links.filter((link) => !(link in pageFiles))).toEqual([]);
    expect(links).toContain('main.js');
  });

  it('never makes HTML or code of a text', () => {
    for (const name of scripts) {
      expect(read(name), name).not.toMatch(
        /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|setHTML|srcdoc|createContextualFragment|\beval\b|new Function|import\(/,
      );
    }
  });

  it('has every element that its scripts look for, each once, and a label for each field', () => {
    const wanted = scripts.flatMap((name) =>
      [...read(name).matchAll(/byId\('([\w-]+)'/g)].map((match) => match[1]),
    );
    const ids = [...html.matchAll(/\sid="([\w-]+)"/g)].map((match) => match[1]);
    expect(wanted.length).toBeGreaterThan(20);
    expect(wanted.filter((id) => !ids.includes(id))).toEqual([]);
    expect(ids.length).toBe(new Set(ids).size);
    const outside = html.replaceAll(/<label\b[\s\S]*?<\/label>/g, '');
    const bare = outside.match(/<(?:input|select|textarea)\b(?![^>]*aria-label)[^>]*>/g);
    expect(bare).toBeNull();
  });
});

describe('what the page says', () => {
  interface Format {
    readonly age: typeof age;
    readonly amount: typeof amount;
    readonly counted: typeof counted;
    readonly laneText: typeof laneText;
    readonly printable: typeof printable;
    readonly shortened: typeof shortened;
  }

  it('is what the command line says: counts, ages, lanes, texts', async () => {
    // The page's module is JavaScript, which the compiler reads with the page's own settings.
    const page = (await import(new URL('format.js', folder).href)) as Format;
    for (const count of [0, 1, 2, 10_000]) {
      for (const more of [false, true]) {
        expect(page.amount({ count, more })).toBe(amount({ count, more }));
        expect(page.counted({ count, more }, 'message')).toBe(counted({ count, more }, 'message'));
      }
      expect(page.counted(count, 'lane')).toBe(counted(count, 'lane'));
    }
    for (const seconds of [null, 0, 119, 120, 7199, 7200, 172_799, 172_800, 9_999_999]) {
      expect(page.age(seconds)).toBe(age(seconds));
    }
    const lanes: LaneName[] = [
      { box: 'outbox', destination: 'orders' },
      { box: 'inbox', consumer: '', messageType: 'order.placed' },
      { box: 'inbox', consumer: 'emails', messageType: 'order.placed' },
    ];
    for (const lane of lanes) expect(page.laneText(lane)).toBe(laneText(lane));
    for (const text of ['plain', 'a\nb\u0000c', 'turned \u202E round', 'x'.repeat(80)]) {
      expect(page.printable(text)).toBe(printable(text));
      expect(page.shortened(text, 60)).toBe(shortened(text, 60));
    }
  });
});
