import { setTimeout as sleep } from 'node:timers/promises';
import type { FunctionHost } from '../host.ts';
import { httpEvent } from '../triggers/http.ts';
import { harmless, items } from './misbehaviour.ts';
import { pick, seeded } from './random.ts';

/** What became of the orders at the door. */
export interface Placed {
  orders: number;
  /** Orders whose event was too large for any broker: refused, and rolled back. */
  refused: number;
}

interface NewOrder {
  readonly customer: string;
  readonly item: string;
  readonly amountCents: number;
  readonly note?: string;
}

export interface PlaceOptions {
  readonly orders: number;
  readonly seed: number;
  /** The orders come evenly over so long. */
  readonly overMs: number;
  readonly producers: number;
  readonly signal: AbortSignal;
}

/** Places orders through the real function, several at a time. `placed` counts along. */
export async function placeOrders(host: FunctionHost, options: PlaceOptions, placed: Placed): Promise<void> {
  const orders = makeOrders(options.orders, options.seed);
  const began = performance.now();
  let next = 0;
  const produce = async (): Promise<void> => {
    for (let index = next++; index < orders.length && !options.signal.aborted; index = next++) {
      const dueMs = (index / orders.length) * options.overMs - (performance.now() - began);
      if (dueMs > 0) await sleep(dueMs, undefined, { signal: options.signal }).catch(() => undefined);
      await place(host, orders[index] as NewOrder, placed);
    }
  };
  await Promise.all(Array.from({ length: options.producers }, produce));
}

async function place(host: FunctionHost, order: NewOrder, placed: Placed): Promise<void> {
  const event = httpEvent('POST', '/orders', JSON.stringify(order));
  const answer = (await host.invoke('place-order', event)) as { statusCode: number; body: string };
  if (answer.statusCode === 201) placed.orders += 1;
  else if (answer.statusCode === 413) placed.refused += 1;
  else throw new Error(`an order was answered with ${answer.statusCode}: ${answer.body}`);
}

/** So many harmless and misbehaving orders, in an order of the seed's choice, and one that is too large besides. */
function makeOrders(count: number, seed: number): readonly NewOrder[] {
  const random = seeded(seed);
  const wanted: NewOrder[] = Array.from({ length: count }, () => ({
    customer: pick(random, ['ada', 'grace', 'edsger', 'barbara', 'tony']),
    item: pick(random, harmless),
    amountCents: 100 + Math.floor(random() * 20_000),
  }));
  // Early enough that they have gone through all their retries while the day still lasts.
  const early = Math.max(3, Math.floor(count / 4));
  const places = new Set<number>();
  while (places.size < 3) places.add(Math.floor(random() * early));
  for (const [which, place] of [...places].entries()) {
    const item = Object.values(items)[which] as string;
    wanted[place] = { ...(wanted[place] as NewOrder), item };
  }
  const large: NewOrder = { customer: 'ada', item: 'a lamp', amountCents: 100, note: 'x'.repeat(1_200_000) };
  wanted.splice(Math.floor(random() * count), 0, large);
  return wanted;
}
