// The values of runtime as one thread sees them, and the handles through which its code reads them while it serves.
//
// A handle compares its version with the runtime's when it is read, two field reads, and looks its key up again only when
// they differ. So runtime knows no handles: those of a configuration that is gone go with it, without a list to keep, weak
// references to sweep or anything to unsubscribe. A field without a runtime key gets a handle of a runtime that never changes.

import type { Random } from '../common/random.js';
import type { FractionalPercent, RuntimeFractionalPercent } from '../config/generated/api.js';
import { NO_RUNTIME, type RuntimeChange, type RuntimeSnapshot } from './snapshot.js';
import type { RuntimeValue } from './value.js';

export class Runtime {
  #values: Map<string, RuntimeValue>;
  #version: number;

  constructor({ values, version }: RuntimeSnapshot = NO_RUNTIME) {
    this.#values = new Map(values);
    this.#version = version;
  }

  /** That of the last change; another number means that values may be other ones. */
  get version(): number {
    return this.#version;
  }

  /** All values, of this version or of later ones. */
  get values(): ReadonlyMap<string, RuntimeValue> {
    return this.#values;
  }

  /** The values of this version: a copy. */
  get snapshot(): RuntimeSnapshot {
    return { version: this.#version, values: new Map(this.#values) };
  }

  /** All handles read these values from now on. */
  apply({ values, version }: RuntimeSnapshot): void {
    this.#values = new Map(values);
    this.#version = version;
  }

  /** All handles read the values with this change from now on; a change that they have already does nothing. */
  change({ entries, version }: RuntimeChange): void {
    if (version <= this.#version) return;
    for (const [key, value] of entries) {
      if (value === undefined) this.#values.delete(key);
      else this.#values.set(key, value);
    }
    this.#version = version;
  }

  /** A look-up by name, for what is worked out once a version; on the way of requests use a handle. */
  get(key: string): RuntimeValue | undefined {
    return this.#values.get(key);
  }

  /** A whole number from 0; `fallback` while no layer has a number under this key. */
  integer(key: string | undefined, fallback: number): RuntimeInteger {
    return new RuntimeInteger(this.#for(key), key, fallback);
  }

  /** See integer(). */
  double(key: string | undefined, fallback: number): RuntimeDouble {
    return new RuntimeDouble(this.#for(key), key, fallback);
  }

  /** A share of requests; `fallback` while no layer has a share or a number (per hundred) under this key. */
  fraction(key: string | undefined, fallback: FractionalPercent): RuntimeFraction {
    return new RuntimeFraction(this.#for(key), key, fallback);
  }

  /** The share that a field asks for; `otherwise` when the field is not set. */
  fractionOf(field: RuntimeFractionalPercent | undefined, otherwise: FractionalPercent): RuntimeFraction {
    if (field === undefined) return this.fraction(undefined, otherwise);
    return this.fraction(field.runtime_key, field.default_value ?? {});
  }

  #for(key: string | undefined): Runtime {
    return key === undefined || key === '' ? UNCHANGING : this;
  }
}

export class RuntimeInteger {
  readonly #runtime: Runtime;
  readonly #key: string;
  readonly #fallback: number;
  #version = -1;
  #value = 0;

  /** Use Runtime.integer(). */
  constructor(runtime: Runtime, key: string | undefined, fallback: number) {
    this.#runtime = runtime;
    this.#key = key ?? '';
    this.#fallback = fallback;
  }

  get value(): number {
    if (this.#version !== this.#runtime.version) this.#read();
    return this.#value;
  }

  #read(): void {
    this.#version = this.#runtime.version;
    this.#value = this.#runtime.get(this.#key)?.integer ?? this.#fallback;
  }
}

export class RuntimeDouble {
  readonly #runtime: Runtime;
  readonly #key: string;
  readonly #fallback: number;
  #version = -1;
  #value = 0.5;

  /** Use Runtime.double(). */
  constructor(runtime: Runtime, key: string | undefined, fallback: number) {
    this.#runtime = runtime;
    this.#key = key ?? '';
    this.#fallback = fallback;
  }

  get value(): number {
    if (this.#version !== this.#runtime.version) this.#read();
    return this.#value;
  }

  #read(): void {
    this.#version = this.#runtime.version;
    this.#value = this.#runtime.get(this.#key)?.double ?? this.#fallback;
  }
}

export class RuntimeFraction {
  readonly #runtime: Runtime;
  readonly #key: string;
  readonly #fallback: number;
  #version = -1;
  /** The share as the bound of a random 32-bit number. */
  #below = 0;

  /** Use Runtime.fraction(). */
  constructor(runtime: Runtime, key: string | undefined, fallback: FractionalPercent) {
    this.#runtime = runtime;
    this.#key = key ?? '';
    this.#fallback = bound(fallback.numerator ?? 0, DENOMINATORS[fallback.denominator ?? 'HUNDRED']);
  }

  /** Whether this request is one of the share. No number is drawn where the share is all or nothing. */
  isHit(random: Random): boolean {
    if (this.#version !== this.#runtime.version) this.#read();
    const below = this.#below;
    return below >= TWO_TO_32 || (below > 0 && random.nextUint32() < below);
  }

  /** isHit() for a number that was drawn before, 0 … 2^32 - 1: the same one always gives the same answer. */
  isHitBy(random: number): boolean {
    if (this.#version !== this.#runtime.version) this.#read();
    return random < this.#below;
  }

  #read(): void {
    this.#version = this.#runtime.version;
    const value = this.#runtime.get(this.#key);
    if (value?.fraction !== undefined) this.#below = bound(value.fraction.numerator, value.fraction.denominator);
    else this.#below = value?.integer === undefined ? this.#fallback : bound(value.integer, 100);
  }
}

/** That of handles without a key. */
const UNCHANGING = new Runtime();

const TWO_TO_32 = 2 ** 32;
/** Of a FractionalPercent. */
export const DENOMINATORS = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 } as const;

function bound(numerator: number, denominator: number): number {
  return Math.min(TWO_TO_32, (numerator * TWO_TO_32) / denominator);
}
