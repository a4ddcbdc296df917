// The refusals of requested hosts, which all threads get together once a turn: a client may request thousands of hosts.

import type { HostRefusal } from '../../upstream/requested-hosts/host-request.js';

export class HostRefusals {
  readonly #publish: (refusals: readonly HostRefusal[]) => void;
  #collected: HostRefusal[] = [];

  constructor(publish: (refusals: readonly HostRefusal[]) => void) {
    this.#publish = publish;
  }

  add(refusal: HostRefusal): void {
    if (this.#collected.push(refusal) > 1) return;
    setImmediate(() => {
      const refusals = this.#collected;
      this.#collected = [];
      this.#publish(refusals);
    });
  }
}
