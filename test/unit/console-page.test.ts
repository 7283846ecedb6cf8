import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { pageFiles } from '../../cli/console/page.ts';
import { age, amount, counted, failures, laneText, printable, shortened } from '../../cli/output.ts';
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
    readonly failures: typeof failures;
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
    for (const [count, max] of [
      [0, 5],
      [1, 1],
      [3, 2],
      [7, 2_147_483_647],
    ] as const) {
      expect(page.failures(count, max)).toBe(failures(count, max));
    }
    expect(failures(3, 2)).toBe('3 times, 2 retries allowed');
    expect(failures(7, 2_147_483_647)).toBe('7 times, any number of retries allowed');
    for (const lane of lanes) expect(page.laneText(lane)).toBe(laneText(lane));
    for (const text of ['plain', 'a\nb\u0000c', 'turned \u202E round', 'x'.repeat(80)]) {
      expect(page.printable(text)).toBe(printable(text));
      expect(page.shortened(text, 60)).toBe(shortened(text, 60));
    }
  });

  it('says when it looked as it writes every other instant: in UTC', async () => {
    const page = (await import(new URL('format.js', folder).href)) as { asOf(now: Date): string };
    expect(page.asOf(new Date('2026-03-29T23:59:58.123+02:00'))).toBe('as of 2026-03-29 21:59:58');
    for (const name of scripts) expect(read(name), name).not.toMatch(/toLocale(?:Time|Date)?String/);
  });

  it('counts nothing on the buttons of a lane in which nothing is', async () => {
    const page = (await import(new URL('lanes.js', folder).href)) as {
      stateButtonText(status: unknown): string;
      touched(status: unknown): string;
    };
    const none = { count: 0, more: false };
    const empty = {
      lane: { box: 'outbox', destination: 'orders' },
      state: 'ready',
      due: none,
      waiting: none,
      held: none,
    };
    const full = {
      ...empty,
      state: 'paused',
      due: { count: 2, more: false },
      held: { count: 10_000, more: true },
    };
    expect([empty, full].map(page.stateButtonText)).toEqual(['Pause…', 'Resume 10002+…']);
    expect([empty, full].map(page.touched)).toEqual(['outbox orders', '10002+ messages of outbox orders']);
  });

  it('says in a sentence that a lane, or a box, has no Failed messages', async () => {
    const page = (await import(new URL('failed-choices.js', folder).href)) as {
      boxChoices: readonly unknown[];
      laneChoices(lanes: readonly unknown[], kept: LaneName): readonly unknown[];
      noneText(choice: unknown, page: number): string;
    };
    const lane = page.laneChoices([], { box: 'outbox', destination: 'orders' });
    expect([...lane, ...page.boxChoices].map((choice) => page.noneText(choice, 1))).toEqual([
      'outbox orders has no Failed messages.',
      'The outbox has no Failed messages.',
      'The inbox has no Failed messages.',
    ]);
    expect(page.noneText(page.boxChoices[0], 2)).toBe('The outbox has no more Failed messages.');
  });
});
