// envoy.resource_monitors.injected_resource: a pressure that a file has.

import type { ResourceMonitor } from './monitor.js';
import { readNumber } from './read-file.js';

export class InjectedResource implements ResourceMonitor {
  readonly #path: string;

  /** Throws an Error when the file is missing. */
  constructor(path: string) {
    this.#path = path;
  }

  read(): number {
    const pressure = readNumber(this.#path);
    if (pressure >= 0 && pressure <= 1) return pressure;
    throw new Error('pressure out of range');
  }
}
