import { EventBusDestination } from '../constructs/destination.ts';

/** A bus on an emulator, which looks buses up by name and knows no ARN there. AWS knows both, and the ARN leads to other accounts too. */
export class EmulatedBus extends EventBusDestination {
  override settings(): Record<string, unknown> {
    return { ...super.settings(), bus: this.eventBus.eventBusName };
  }
}
