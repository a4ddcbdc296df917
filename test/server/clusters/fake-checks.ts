// Health checks whose outcomes a test decides.

import { Random } from '../../../src/common/random.js';
import { addressText } from '../../../src/io/addresses/address.js';
import type { TimingWheel } from '../../../src/io/time/timing-wheel.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import type { CheckerRequest, CheckThread } from '../../../src/server/clusters/health-checks/check-thread.js';
import { checkAddress } from '../../../src/upstream/health-checks/check-target.js';
import type { Checker } from '../../../src/upstream/health-checks/checker.js';
import type { Outcome } from '../../../src/upstream/health-checks/host-health.js';

export class FakeChecks implements CheckThread {
  readonly random = new Random(1);
  readonly runtime = new Runtime();
  readonly timers: TimingWheel;
  /** Starts of due checks, where a test delays them. */
  readonly due: (() => void)[] = [];
  isHeld = false;
  /** No check can start. */
  isBroken = false;
  readonly #pending = new Map<string, CheckerRequest>();

  constructor(timers: TimingWheel) {
    this.timers = timers;
  }

  /** Addresses of hosts with a check in progress. */
  get pending(): string[] {
    return [...this.#pending.keys()];
  }

  /** The Host field of the check in progress there. */
  hostnameOf(address: string): string | undefined {
    return this.#pending.get(address)?.endpoint.check?.hostname;
  }

  checker(request: CheckerRequest): Checker {
    if (this.isBroken) throw new Error('the test says that there is no room');
    const address = addressText(checkAddress(request.endpoint));
    return {
      begin: () => {
        if (this.#pending.has(address)) throw new Error(`${address} is being checked already`);
        this.#pending.set(address, request);
      },
      close: () => this.#pending.delete(address),
    };
  }

  ask(): never {
    throw new Error('no cluster of these tests is a Redis cluster');
  }

  schedule(begin: () => void): void {
    if (this.isHeld) this.due.push(begin);
    else begin();
  }

  /** Ends the host's check in progress with this outcome. */
  end(address: string, outcome: Outcome): void {
    const request = this.#pending.get(address);
    if (request === undefined) throw new Error(`${address} is not being checked, but ${this.pending}`);
    this.#pending.delete(address);
    request.onChecked(outcome, 'as set by the test');
  }
}
