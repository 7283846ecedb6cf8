export { closeConnections } from '../connections.ts';

import { transactionalFor } from '../transactional.ts';
import { postgres } from './engine.ts';
export const transactional = transactionalFor(postgres);
