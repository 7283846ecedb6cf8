import type { DeploymentFacts, HandlerFacts } from './facts.ts';
import { answers, type Finding } from './finding.ts';

const { pass, fail } = answers('handlers');

/** Two functions for one type would share its messages at random, each handling about half of them. */
export function checkHandlers(facts: DeploymentFacts): Finding[] {
  const byType = new Map<string, HandlerFacts[]>();
  for (const handler of facts.handlers) {
    const key = JSON.stringify([handler.consumer, handler.messageType]);
    byType.set(key, [...(byType.get(key) ?? []), handler]);
  }
  return [...byType.values()].map(check);
}

function check(handlers: readonly HandlerFacts[]): Finding {
  const { messageType, consumer } = handlers[0] as HandlerFacts;
  const subject = consumer === '' ? messageType : `${messageType} for ${consumer}`;
  return handlers.length === 1
    ? pass(subject, `Handled by ${handlers[0]?.function}`)
    : fail(
        subject,
        `${handlers.length} functions handle this type: ${handlers.map((each) => each.function).join(', ')}. Each would get a part of its messages`,
        'keep one of them, or give each a consumer of its own with an inbox of its own',
      );
}
