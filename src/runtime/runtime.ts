// The runtime values of one thread, and the handles through which serving code reads them.
//
// On each read, a handle compares its version with the runtime's (two field reads) and looks up its key only if they differ. So
// the runtime need not track handles: those of an old configuration are garbage collected without lists, weak references or
// unsubscription. A field without a runtime key gets a handle of a runtime that never changes.

import type { Random } from '../common/random.js';
import type { FractionalPercent, RuntimeFeatureFlag, RuntimeFractionalPercent } from '../config/generated/api.js';
import { NO_RUNTIME, type RuntimeChange, type RuntimeSnapshot } from './snapshot.js';
import type { RuntimeValue } from './value.js';

export class Runtime {
  #values: Map<string, RuntimeValue>;
  #version: number;

  constructor({ values, version }: RuntimeSnapshot = NO_RUNTIME) {
    this.#values = new Map(values);
    this.#version = version;
  }

  /** The version of the last change. A different number means that values may have changed. */
  get version(): number {
    return this.#version;
  }

  /** All values; the map is updated in place. */
  get values(): ReadonlyMap<string, RuntimeValue> {
    return this.#values;
  }

  /** A copy of the current values. */
  get snapshot(): RuntimeSnapshot {
    return { version: this.#version, values: new Map(this.#values) };
  }

  /** Replaces all values. */
  apply({ values, version }: RuntimeSnapshot): void {
    this.#values = new Map(values);
    this.#version = version;
  }

  /** Applies a change, unless it is already included. */
  change({ entries, version }: RuntimeChange): void {
    if (version <= this.#version) return;
    for (const [key, value] of entries) {
      if (value === undefined) this.#values.delete(key);
      else this.#values.set(key, value);
    }
    this.#version = version;
  }

  /** Returns a value by name. For values that are computed once per version; the request path uses handles. */
  get(key: string): RuntimeValue | undefined {
    return this.#values.get(key);
  }

  /** Returns a handle of a feature flag; `otherwise` applies if the field is absent. */
  flag(field: RuntimeFeatureFlag | undefined, otherwise: boolean): RuntimeFlag {
    const key = field?.runtime_key;
    return new RuntimeFlag(this.#for(key), key, field === undefined ? otherwise : (field.default_value ?? false));
  }

  /** Returns a handle of an integer, at least 0; `fallback` applies while no layer has a number for the key. */
  integer(key: string | undefined, fallback: number): RuntimeInteger {
    return new RuntimeInteger(this.#for(key), key, fallback);
  }

  /** Like integer(), for a double. */
  double(key: string | undefined, fallback: number): RuntimeDouble {
    return new RuntimeDouble(this.#for(key), key, fallback);
  }

  /**
   * Returns a handle of a fraction of requests; `fallback` applies while no layer has a fraction or a number (percent) for the
   * key.
   */
  fraction(key: string | undefined, fallback: FractionalPercent): RuntimeFraction {
    return new RuntimeFraction(this.#for(key), key, fallback);
  }

  /** Returns a handle of the field's fraction; `otherwise` applies if the field is not set. */
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
  readonly #fallbackBuckets: number;
  /** The fraction as the exclusive upper bound of a random 32-bit number. */
  #below = 0;
  #numerator = 0;
  #buckets = 1;

  /** Use Runtime.fraction(). */
  constructor(runtime: Runtime, key: string | undefined, fallback: FractionalPercent) {
    this.#runtime = runtime;
    this.#key = key ?? '';
    this.#fallbackBuckets = DENOMINATORS[fallback.denominator ?? 'HUNDRED'];
    this.#fallback = fallback.numerator ?? 0;
  }

  /** Returns whether a request is in the fraction. Draws no random number if the fraction is 0 or 1. */
  isHit(random: Random): boolean {
    if (this.#version !== this.#runtime.version) this.#read();
    const below = this.#below;
    return below >= TWO_TO_32 || (below > 0 && random.nextUint32() < below);
  }

  /** The fraction of 2^32. */
  get bound(): number {
    if (this.#version !== this.#runtime.version) this.#read();
    return this.#below;
  }

  /** Like isHit(), for a number that was drawn before, 0 … 2^32 - 1. The result is the same for the same number. */
  isHitBy(random: number): boolean {
    if (this.#version !== this.#runtime.version) this.#read();
    return random < this.#below;
  }

  /**
   * Like isHit(), for a number of the request: as in Envoy, the rest of its division by the denominator decides. All proxies that
   * see the request decide alike.
   */
  isHitByBucket(number: number): boolean {
    if (this.#version !== this.#runtime.version) this.#read();
    return number % this.#buckets < this.#numerator;
  }

  #read(): void {
    this.#version = this.#runtime.version;
    const value = this.#runtime.get(this.#key);
    if (value?.fraction !== undefined) this.#set(value.fraction.numerator, value.fraction.denominator);
    else if (value?.integer !== undefined) this.#set(value.integer, 100);
    else this.#set(this.#fallback, this.#fallbackBuckets);
  }

  #set(numerator: number, denominator: number): void {
    this.#below = bound(numerator, denominator);
    this.#numerator = numerator;
    this.#buckets = denominator;
  }
}

export class RuntimeFlag {
  readonly #runtime: Runtime;
  readonly #key: string;
  readonly #fallback: boolean;
  #version = -1;
  #value = false;

  /** Use Runtime.flag(). */
  constructor(runtime: Runtime, key: string | undefined, fallback: boolean) {
    this.#runtime = runtime;
    this.#key = key ?? '';
    this.#fallback = fallback;
  }

  get value(): boolean {
    if (this.#version !== this.#runtime.version) this.#read();
    return this.#value;
  }

  #read(): void {
    this.#version = this.#runtime.version;
    const text = this.#runtime.get(this.#key)?.text.trim().toLowerCase();
    this.#value = text === 'true' || (text !== 'false' && this.#fallback);
  }
}

/** The runtime of handles without a key. */
const UNCHANGING = new Runtime();

const TWO_TO_32 = 2 ** 32;
/** Denominators of a FractionalPercent. */
export const DENOMINATORS = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 } as const;

function bound(numerator: number, denominator: number): number {
  return Math.min(TWO_TO_32, (numerator * TWO_TO_32) / denominator);
}
