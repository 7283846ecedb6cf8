import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type ConsoleProcess, enter, startConsoleProcess, type Visitor } from './console.ts';
import type { EngineDatabase } from './engine/test-engine.ts';

/** A console over a database, with somebody inside. Both are there within tests. */
export interface OpenConsole {
  readonly console: ConsoleProcess;
  readonly visitor: Visitor;
}

/** Runs the console for a file's tests, each with empty tables, and drops the database after them. */
export function consoleOver(db: EngineDatabase): OpenConsole {
  const open: { -readonly [Part in keyof OpenConsole]?: OpenConsole[Part] } = {};
  beforeAll(async () => {
    open.console = await startConsoleProcess(['--url', db.url]);
    open.visitor = await enter(open.console);
  });
  beforeEach(() => db.clear());
  afterAll(async () => {
    await open.console?.stop();
    await db.drop();
  });
  return {
    get console() {
      return there(open.console);
    },
    get visitor() {
      return there(open.visitor);
    },
  };
}

function there<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error('the console runs within tests only');
  return part;
}
