import { inject } from 'vitest';
import type { TestEngine } from './test-engine.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The engine that this project's files run on. */
    engine: TestEngine['name'];
  }
}

/** The engine that this run of the file is for. Only its driver is loaded. */
export const engine: TestEngine =
  inject('engine') === 'sqlserver'
    ? (await import('./sqlserver.ts')).sqlserver
    : (await import('./postgres.ts')).postgres;
