// Connects to a host with several addresses (Happy Eyeballs, RFC 8305 section 5): tries the next one when a try has failed, or has taken
// some time. The first that is ready is the connection; the others end.

import { type Address, addressText, encodeAddress } from '../../io/addresses/address.js';
import { Timer } from '../../io/time/timing-wheel.js';
import { ClusterStats, HostStats } from '../../stats/layouts/cluster.js';
import type { PoolFailure } from '../pool-failure.js';
import { type DialEvents, type DialTarget, HostDial } from './host-dial.js';

/** How long an address is tried alone, as in Envoy. */
const NEXT_MS = 300;

export class AddressRace implements DialEvents {
  /** Tries that have not failed; never empty until the race is over. */
  readonly #dials: HostDial[] = [];
  readonly #events: DialEvents;
  readonly #target: DialTarget;
  readonly #addresses: readonly Address[];
  readonly #timer = new Timer<AddressRace>(this, onTimer);
  /** Index of the next address. */
  #next = 0;

  /** `addresses`: in the order of the tries. Throws when no connect can begin. */
  constructor(events: DialEvents, target: DialTarget, addresses: readonly Address[]) {
    this.#events = events;
    this.#target = target;
    this.#addresses = addresses;
    this.#dial();
  }

  /** Ends the race. Returns the ID of the connection that remains, for the caller to close. */
  stop(): number {
    const [last, ...others] = this.#dials.toReversed();
    for (const dial of others) this.#close(dial);
    this.#target.cluster.thread.wheel.cancel(this.#timer);
    return last!.id;
  }

  /** Tries the next address, after a while without an outcome of the last one. */
  tryNext(): void {
    const { cluster, host } = this.#target;
    try {
      this.#dial();
      // As in Envoy, the cluster counts the first try as that of the connection.
      cluster.stats.increment(ClusterStats.at.upstream_cx_total);
      host.stats.increment(HostStats.at.cx_total);
    } catch {
      // Descriptors or memory are short: the tries that have begun go on.
      if (this.#hasNext) this.#schedule();
    }
  }

  // ── DialEvents ───────────────────────────────────────────────────────────────────────────────────────────────────

  dialReady(dial: HostDial): void {
    for (const other of this.#dials) if (other !== dial) this.#close(other);
    this.#target.cluster.thread.wheel.cancel(this.#timer);
    this.#events.dialReady(dial);
  }

  dialFailed(dial: HostDial, failure: PoolFailure, detail: string): void {
    if (this.#hasNext) this.tryNext();
    if (this.#dials.length === 1) return this.#events.dialFailed(dial, failure, detail);
    this.#dials.splice(this.#dials.indexOf(dial), 1);
    this.#close(dial);
  }

  dialReceived(offset: number, length: number): void {
    this.#events.dialReceived(offset, length);
  }

  /** Only what precedes TLS can wait. */
  onBlocked(): void {}

  onDrained(): void {}

  onFault(): void {
    this.#events.onFault();
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  get #hasNext(): boolean {
    return this.#next < this.#addresses.length;
  }

  #dial(): void {
    const address = this.#addresses[this.#next++]!;
    this.#dials.push(new HostDial(this, this.#target, encodeAddress(address), addressText(address)));
    if (this.#hasNext) this.#schedule();
  }

  #schedule(): void {
    this.#target.cluster.thread.wheel.reschedule(this.#timer, NEXT_MS);
  }

  #close({ id }: HostDial): void {
    this.#target.cluster.thread.transport.close(id, 0, 0);
  }
}

function onTimer(race: AddressRace): void {
  race.tryNext();
}
