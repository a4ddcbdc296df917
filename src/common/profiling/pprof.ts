// Encodes the profiles of several threads as one file for profiling tools: pprof's protobuf, gzipped.

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import {
  Function as Func,
  Label,
  Line,
  Location,
  Mapping,
  Profile,
  Sample,
  StringTable,
  ValueType,
} from 'pprof-format';
import {
  CPU_PERIOD_NS,
  HEAP_PERIOD_BYTES,
  type ProfiledCall,
  type ProfiledFunction,
  type ProfilerKind,
  type ThreadProfile,
} from './profile.js';

/** The profiles of all threads at one time. */
export interface ProfileSet {
  readonly kind: ProfilerKind;
  readonly threads: readonly ThreadProfile[];
  /** End of the profile, in milliseconds since 1970. */
  readonly timeMs: number;
  /** 0 for a snapshot of a state. */
  readonly durationMs: number;
  /** Notes for the reader (`pprof -comments`). */
  readonly comments: readonly string[];
}

/**
 * Encodes a set of profiles. Each sample has two values: the number of samples taken, and nanoseconds or bytes, which tools
 * show first. The outermost function of each stack is the thread, which is also the sample's label `thread`.
 */
export function encodePprof(set: ProfileSet): Promise<Uint8Array> {
  return promisify(gzip)(new Encoder().profile(set).encode());
}

const VALUES: {
  readonly [K in ProfilerKind]: { readonly type: string; readonly unit: string; readonly period: number };
} = {
  cpu: { type: 'cpu', unit: 'nanoseconds', period: CPU_PERIOD_NS },
  heap: { type: 'inuse_space', unit: 'bytes', period: HEAP_PERIOD_BYTES },
  allocations: { type: 'alloc_space', unit: 'bytes', period: HEAP_PERIOD_BYTES },
};

class Encoder {
  readonly #strings = new StringTable();
  readonly #functions: Func[] = [];
  readonly #functionIds = new Map<string, number>();
  readonly #locations: Location[] = [];
  readonly #locationIds = new Map<string, number>();

  profile({ kind, threads, timeMs, durationMs, comments }: ProfileSet): Profile {
    const { type, unit, period } = VALUES[kind];
    const sample = threads.flatMap((thread) => this.#samples(thread));
    return new Profile({
      sampleType: [this.#valueType('samples', 'count'), this.#valueType(type, unit)],
      sample,
      mapping: [this.#mapping()],
      location: this.#locations,
      function: this.#functions,
      stringTable: this.#strings,
      timeNanos: BigInt(Math.round(timeMs)) * 1_000_000n,
      durationNanos: Math.round(durationMs * 1e6),
      periodType: this.#valueType(kind === 'cpu' ? 'cpu' : 'space', unit),
      period,
      comment: comments.map((text) => this.#strings.dedup(text)),
      defaultSampleType: this.#strings.dedup(type),
    });
  }

  #samples({ thread, calls, samples }: ThreadProfile): Sample[] {
    const label = [new Label({ key: this.#strings.dedup('thread'), str: this.#strings.dedup(thread) })];
    return samples.map(({ call, line, count, value }) => {
      const locationId: number[] = [];
      let at: ProfiledCall | undefined = calls[call];
      for (let executed = line; at !== undefined; executed = at?.function.line ?? 0) {
        locationId.push(this.#location(at.function, executed));
        at = calls[at.caller];
      }
      return new Sample({ locationId, value: [count, Math.round(value)], label });
    });
  }

  #location(called: ProfiledFunction, line: number): number {
    const functionId = this.#function(called);
    const key = `${functionId}:${line}`;
    let id = this.#locationIds.get(key);
    if (id === undefined) {
      id = this.#locations.length + 1;
      this.#locationIds.set(key, id);
      this.#locations.push(new Location({ id, mappingId: 1, line: [new Line({ functionId, line })] }));
    }
    return id;
  }

  #function({ name, file, line }: ProfiledFunction): number {
    const key = `${name}\n${file}\n${line}`;
    let id = this.#functionIds.get(key);
    if (id === undefined) {
      id = this.#functions.length + 1;
      this.#functionIds.set(key, id);
      const text = this.#strings.dedup(name);
      const filename = this.#strings.dedup(file);
      this.#functions.push(new Func({ id, name: text, systemName: text, filename, startLine: line }));
    }
    return id;
  }

  /** Returns the mapping of all functions. Without one, tools search for a binary to read names from. */
  #mapping(): Mapping {
    const filename = this.#strings.dedup('baton');
    return new Mapping({ id: 1, filename, hasFunctions: true, hasFilenames: true, hasLineNumbers: true });
  }

  #valueType(type: string, unit: string): ValueType {
    return new ValueType({ type: this.#strings.dedup(type), unit: this.#strings.dedup(unit) });
  }
}
