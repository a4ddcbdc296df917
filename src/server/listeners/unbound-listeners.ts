// Listeners of LDS that cannot be had for now, as a parent or child process may have their addresses for a while: they are tried again.

import { messageOf } from '../../common/errors/errors.js';
import { isDescriptorShortage } from '../../common/errors/shortages.js';
import { forEachGuarded } from '../../log/internal-errors.js';
import { ListenError } from './version/listen-sockets.js';
import type { ListenerSpec } from './version/primary-listener.js';

/** Why a listener cannot be had for now. */
export interface Shortage {
  readonly until: string;
  /** How soon it is tried again. */
  readonly retryMs: number;
}

export const ADDRESS_IN_USE: Shortage = { until: 'the address is free', retryMs: 500 };
/** Each try has lines of the workers in the log. */
const FEW_DESCRIPTORS: Shortage = { until: 'there are descriptors', retryMs: 5000 };

export class UnboundListeners {
  readonly #plan: (spec: ListenerSpec) => (() => void) | undefined;
  readonly #waiting = new Map<string, { readonly spec: ListenerSpec; readonly shortage: Shortage }>();
  #retry: NodeJS.Timeout | undefined;

  /** What `plan` returns takes a listener up; undefined: it still cannot be had. */
  constructor(plan: (spec: ListenerSpec) => (() => void) | undefined) {
    this.#plan = plan;
  }

  get names(): Iterable<string> {
    return this.#waiting.keys();
  }

  has(name: string): boolean {
    return this.#waiting.has(name);
  }

  add(spec: ListenerSpec, shortage: Shortage): void {
    this.#waiting.set(spec.name, { spec, shortage });
    this.#tryLater();
  }

  /** It has come, or is not wanted any more. */
  delete(name: string): void {
    this.#waiting.delete(name);
  }

  tryNow(): void {
    clearTimeout(this.#retry);
    forEachGuarded([...this.#waiting], 'internal error: a listener cannot be taken up', ([name, { spec }]) => {
      const takeUp = this.#plan(spec);
      if (takeUp === undefined) return;
      this.#waiting.delete(name);
      takeUp();
    });
    if (this.#waiting.size > 0) this.#tryLater();
  }

  /** Nothing is tried again any more. */
  close(): void {
    clearTimeout(this.#retry);
    this.#waiting.clear();
  }

  #tryLater(): void {
    clearTimeout(this.#retry);
    const waits = [...this.#waiting.values()].map(({ shortage }) => shortage.retryMs);
    this.#retry = setTimeout(() => this.tryNow(), Math.min(...waits));
  }
}

/** Whether a listener that could not be had for this reason may be had later; undefined: not as it is. */
export function shortageIn(error: unknown): Shortage | undefined {
  if (error instanceof ListenError && error.isInUse) return ADDRESS_IN_USE;
  return isDescriptorShortage(error) ? FEW_DESCRIPTORS : undefined;
}

/** Whoever is told that it is refused is to know that it may come to be used. */
export function refusalText(error: unknown): string {
  const shortage = shortageIn(error);
  return messageOf(error) + (shortage === undefined ? '' : `; the listener is used as soon as ${shortage.until}`);
}
