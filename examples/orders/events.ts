import { z } from 'zod';

/** What the event `order.placed` carries. Any Standard Schema will do in place of zod. */
export const OrderPlaced = z.object({
  orderId: z.uuid(),
  customer: z.string(),
  item: z.string(),
  amountCents: z.int().positive(),
});

export type OrderPlaced = z.infer<typeof OrderPlaced>;
