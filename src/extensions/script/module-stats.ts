// ctx.stats: stats whose names a module chooses. Their handles are kept, so that a name is looked up once.

import type { Stats } from '../../api/index.js';
import type { DynamicCounter, DynamicGauge, DynamicHistogram, ThreadStats } from '../sdk.js';

/** Names per module and worker: each needs memory that is not freed before its filter chain is removed. */
const MAX_NAMES = 1000;

type Handle = DynamicCounter | DynamicGauge | DynamicHistogram;

export class ModuleStats implements Stats {
  readonly #thread: ThreadStats;
  readonly #prefix: string;
  readonly #reserved: readonly string[];
  readonly #handles = new Map<string, Handle>();

  /** `prefix`: of the module's scope; `reserved`: the names of its layout. */
  constructor(thread: ThreadStats, prefix: string, reserved: readonly string[]) {
    this.#thread = thread;
    this.#prefix = prefix;
    this.#reserved = reserved;
  }

  count(name: string, n = 1): void {
    const counter = this.#handles.get(name) ?? this.#add(name, () => this.#thread.dynamicCounter(this.#prefix, name));
    if (!('add' in counter)) throw anotherKind(name);
    if (!(n >= 0)) throw new RangeError(`a counter cannot be changed by ${n}`);
    counter.add(n);
  }

  gauge(name: string, value: number): void {
    const gauge = this.#handles.get(name) ?? this.#add(name, () => this.#thread.dynamicGauge(this.#prefix, name));
    if (!('set' in gauge)) throw anotherKind(name);
    if (!Number.isFinite(value)) throw new RangeError(`a gauge cannot be ${value}`);
    gauge.set(value);
  }

  record(name: string, ms: number): void {
    const found = this.#handles.get(name) ?? this.#add(name, () => this.#thread.dynamicHistogram(this.#prefix, name));
    if (!('record' in found)) throw anotherKind(name);
    if (!(ms >= 0 && Number.isFinite(ms))) throw new RangeError(`a histogram cannot record ${ms}`);
    found.record(ms);
  }

  #add<H extends Handle>(name: string, create: () => H): H {
    if (!/^[\w.-]+$/.test(name))
      throw new TypeError(`'${name}' is not a valid stat name: use letters, digits, _, . and -`);
    if (this.#reserved.includes(name)) throw new TypeError(`the stat '${name}' is Baton's own`);
    if (this.#handles.size >= MAX_NAMES) throw new RangeError(`a module has at most ${MAX_NAMES} stats`);
    const handle = create();
    this.#handles.set(name, handle);
    return handle;
  }
}

function anotherKind(name: string): TypeError {
  return new TypeError(`the stat '${name}' is of another kind`);
}
