import { laneLabel } from '../../shared/operations/maintain.ts';
import type { HandlerPart } from './parts.ts';

/** A handler's lane, as maintenance names it in its figures. */
export function handlerLane({ messageType, consumer = '' }: HandlerPart): string {
  return laneLabel({ box: 'inbox', messageType, consumer });
}
