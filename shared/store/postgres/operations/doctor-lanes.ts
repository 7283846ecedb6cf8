import { ofLane, ofRelays } from '../../operations/lane-findings.ts';
import { relayAges } from '../sql/operations-maintain.ts';
import type { Check } from './doctor.ts';
import { rowsOf } from './session.ts';
import { readStatus } from './status.ts';

/** Checks of the lanes' figures, and of who works on them. */
export const lanesChecks: readonly Check[] = [
  {
    check: 'lane',
    look: async ({ source, names }) => (await readStatus(source, names)).lanes.flatMap(ofLane),
  },
  {
    check: 'worker',
    look: async ({ source, names }) => ofRelays(rowsOf(await source.query(relayAges(names)))),
  },
];
