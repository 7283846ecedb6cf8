import type { Command, OperatorRequest } from './requests.ts';
import type { Responses } from './responses.ts';

/** A parsed request of one command. */
export type RequestOf<Name extends Command> = Extract<OperatorRequest, { command: Name }>;

/**
 * What an operator may ask of a database: one method per command. Each call is bounded in rows and time, and reads
 * no history. The store's engine implements it; the command line and the `maintain` function reach it by `operate`.
 */
export type Operations = {
  readonly [Name in Command]: (request: RequestOf<Name>) => Promise<Responses[Name]>;
};
