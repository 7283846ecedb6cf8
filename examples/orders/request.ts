import type { APIGatewayProxyStructuredResultV2 } from 'aws-lambda';
import { z } from 'zod';

/** What is posted to place an order. */
export const NewOrder = z.object({
  customer: z.string().min(1),
  item: z.string().min(1),
  amountCents: z.int().positive(),
  /** Goes into the event; a very long one makes it larger than any broker carries. */
  note: z.string().optional(),
});

/** A body that is no JSON is no order either. */
export function parseJson(body: string | undefined): unknown {
  try {
    return JSON.parse(body ?? '');
  } catch {
    return undefined;
  }
}

/** An answer in JSON. */
export function answer(statusCode: number, body: unknown): APIGatewayProxyStructuredResultV2 {
  return { statusCode, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
}
