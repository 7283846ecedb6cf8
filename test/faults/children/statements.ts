import { engine } from './engine.ts';

/** What an event may ask of the process that it is for. */
export interface Death {
  /** The statement at which it is killed: by its number in this event, or the first that has one of these texts in it. */
  readonly dieAt?: number | readonly string[];
  /** Whether the server gets that statement. @default false */
  readonly sent?: boolean;
}

let death: Death = {};
let count = 0;

/** From now on this process is killed where the event says, if it does. */
export function dieAsTold(event: unknown): void {
  death = event as Death;
  count = 0;
}

/** True where this statement is the last one. */
function isLast(text: string): boolean {
  count += 1;
  const { dieAt } = death;
  return typeof dieAt === 'number' ? count === dieAt : (dieAt ?? []).some((part) => text.includes(part));
}

/** Has a driver's method ask first whether this process is to live on. */
function watch(prototype: object, method: string): void {
  const original = Reflect.get(prototype, method) as (...values: unknown[]) => unknown;
  Reflect.set(prototype, method, function (this: unknown, ...values: unknown[]): unknown {
    const last = isLast(textOf(values[0]));
    if (last && !death.sent) kill();
    const answer = original.apply(this, values);
    if (last) setImmediate(kill);
    return answer;
  });
}

function textOf(statement: unknown): string {
  if (typeof statement === 'string') return statement;
  return (statement as { readonly text?: string } | undefined)?.text ?? '';
}

function kill(): void {
  process.kill(process.pid, 'SIGKILL');
}

if (engine.name === 'postgres') {
  const { default: pg } = await import('pg');
  watch(pg.Client.prototype, 'query');
} else {
  const { default: sql } = await import('mssql');
  watch(sql.Request.prototype, 'query');
  watch(sql.Transaction.prototype, 'commit');
}
