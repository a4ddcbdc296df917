// Faults of commands: errors in place of replies, and delays of replies.

import type { RedisProxy_RedisFault } from '../../../../config/generated/api.js';
import { durationMs, type Random, type Runtime, type RuntimeFraction } from '../../../sdk.js';

export interface Fault {
  readonly isError: boolean;
  readonly delayMs: number;
  readonly fraction: RuntimeFraction;
}

export class Faults {
  /** Of all commands. */
  readonly #general: readonly Fault[];
  readonly #byCommand = new Map<string, Fault[]>();

  constructor(configs: readonly RedisProxy_RedisFault[], runtime: Runtime) {
    const general: Fault[] = [];
    for (const config of configs) {
      const fault: Fault = {
        isError: config.fault_type === 'ERROR',
        delayMs: durationMs(config.delay, 0),
        fraction: runtime.fractionOf(config.fault_enabled, {}),
      };
      if ((config.commands ?? []).length === 0) general.push(fault);
      for (const command of config.commands ?? []) {
        const name = command.toLowerCase();
        this.#byCommand.set(name, [...(this.#byCommand.get(name) ?? []), fault]);
      }
    }
    for (const faults of this.#byCommand.values()) faults.push(...general);
    this.#general = general;
  }

  /** Returns one of the faults of a command, which begin with its own. Their fractions add up: one number decides. */
  pick(command: string, random: Random): Fault | undefined {
    let number = random.nextUint32();
    for (const fault of this.#byCommand.get(command) ?? this.#general) {
      const { bound } = fault.fraction;
      if (number < bound) return fault;
      number -= bound;
    }
    return undefined;
  }
}
