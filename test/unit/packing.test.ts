import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { packRounds } from '../../shared/delivery/packing.ts';

const limits = { entries: 10, callBytes: 1000, ordered: true };
const parcel = fc.record({
  entry: fc.constant(0),
  bytes: fc.integer({ min: 1, max: 1000 }),
  key: fc.option(fc.constantFrom('a', 'b', 'c')),
  alone: fc.boolean(),
});

describe('packing calls', () => {
  it('loses nothing, and never exceeds what the transport takes, by count or by bytes', () => {
    fc.assert(
      fc.property(fc.array(parcel, { maxLength: 60 }), (parcels) => {
        const calls = packRounds(parcels, limits).flat();
        expect(calls.flat()).toHaveLength(parcels.length);
        expect(new Set(calls.flat()).size).toBe(parcels.length);
        for (const call of calls) {
          expect(call.length).toBeLessThanOrEqual(10);
          expect(call.reduce((sum, p) => sum + p.bytes, 0)).toBeLessThanOrEqual(1000);
        }
      }),
    );
  });

  it('puts one message of a key in a round, in the order given', () => {
    fc.assert(
      fc.property(fc.array(parcel, { maxLength: 60 }), (parcels) => {
        const rounds = packRounds(parcels, limits);
        for (const key of ['a', 'b', 'c']) {
          const given = parcels.filter((p) => p.key === key);
          const perRound = rounds.map((round) => round.flat().filter((p) => p.key === key));
          expect(perRound.every((list) => list.length <= 1)).toBe(true);
          expect(perRound.flat()).toEqual(given);
        }
      }),
    );
  });

  it('sends what failed before in calls of its own, ahead of the others', () => {
    const suspect = { entry: 1, bytes: 1, key: null, alone: true };
    const other = { entry: 2, bytes: 1, key: null, alone: false };
    expect(packRounds([other, suspect, other], limits)).toEqual([[[suspect], [other, other]]]);
  });

  it.each([
    { sizes: [500, 499, 1], calls: [3] },
    { sizes: [500, 500, 1], calls: [2, 1] },
    { sizes: [500, 501, 1], calls: [1, 2] },
    { sizes: [1000, 1000], calls: [1, 1] },
  ])('cuts at the byte limit: $sizes become calls of $calls', ({ sizes, calls }) => {
    const parcels = sizes.map((bytes) => ({ entry: 0, bytes, key: null, alone: false }));
    expect(packRounds(parcels, limits).flatMap((round) => round.map((call) => call.length))).toEqual(calls);
  });
});
