// The memory that clients may use outside of the arena: half of it, so that replies can still be read when clients have used theirs.

import type { Memory } from '../../../sdk.js';
import type { Reservations } from './resp/held-bytes.js';

export class ClientMemory implements Reservations {
  readonly #outside: Memory['outside'];

  constructor({ outside }: Memory) {
    this.#outside = outside;
  }

  reserve(bytes: number): boolean {
    const { limit, reserved } = this.#outside;
    return (reserved === 0 || reserved + bytes <= limit / 2) && this.#outside.reserve(bytes);
  }

  release(bytes: number): void {
    this.#outside.release(bytes);
  }
}
