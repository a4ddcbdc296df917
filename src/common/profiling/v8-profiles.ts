// Converts the output of V8's profilers into the profile of a thread. No I/O.

import type { HeapProfiler, Profiler, Runtime } from 'node:inspector';
import { sourceName, sourcePlace } from '../package/source-places.js';
import type { ThreadMemory } from '../process/thread-memory.js';
import { CPU_PERIOD_NS, type ProfiledCall, type ProfiledSample, type ThreadProfile } from './profile.js';

/** HeapProfiler.SamplingHeapProfile with the samples, which Node's types omit. */
export interface SampledHeap {
  readonly head: SampledNode;
  readonly samples: readonly { readonly nodeId: number }[];
}

export interface SampledNode extends HeapProfiler.SamplingHeapProfileNode {
  readonly id: number;
  readonly children: SampledNode[];
}

/**
 * Returns where the thread spent its processor time, `cpuNs` in total. V8 cannot distinguish waiting from the native
 * transport, which runs while the event loop polls: time outside JavaScript is reported as one total.
 */
export function cpuProfile(thread: string, profile: Profiler.Profile, cpuNs: number): ThreadProfile {
  const builder = new ProfileBuilder(thread);
  let samples = 0;
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const visit = (node: Profiler.ProfileNode, caller: number) => {
    const { callFrame, hitCount = 0, positionTicks = [], children = [] } = node;
    if (callFrame.functionName === '(idle)') return;
    const call = callFrame.functionName === '(root)' ? caller : builder.call(caller, callFrame);
    let rest = hitCount;
    samples += hitCount;
    for (const { line, ticks } of positionTicks) {
      builder.sample(call, ticks, ticks * CPU_PERIOD_NS, sourcePlace(callFrame.url, line).line);
      rest -= ticks;
    }
    builder.sample(call, rest, rest * CPU_PERIOD_NS);
    for (const child of children) visit(nodes.get(child)!, call);
  };
  // V8 lists the root first.
  if (profile.nodes[0] !== undefined) visit(profile.nodes[0], builder.root);
  builder.sum('(transport and kernel)', Math.max(0, cpuNs - samples * CPU_PERIOD_NS));
  return builder.profile;
}

/** Returns allocated bytes by the place that allocated them. */
export function allocationsProfile(thread: string, profile: SampledHeap): ThreadProfile {
  const builder = new ProfileBuilder(thread);
  addAllocations(builder, profile);
  return builder.profile;
}

/** Returns the memory in use: by the place that allocated it, and as totals where the place is unknown. */
export function heapProfile(memory: ThreadMemory, profile: SampledHeap): ThreadProfile {
  const builder = new ProfileBuilder(memory.name);
  const sampled = addAllocations(builder, profile);
  // Samples are extrapolated: their sum is an estimate and may exceed the used heap.
  builder.sum('(allocated before sampling began)', Math.max(0, memory.heap.used_heap_size - sampled));
  addOutside(builder, memory);
  return builder.profile;
}

/** Returns the memory in use of a heap that was not sampled, by heap space. */
export function heapSums(memory: ThreadMemory): ThreadProfile {
  const builder = new ProfileBuilder(memory.name);
  const heap = builder.call(builder.root, { functionName: '(heap, not sampled)', url: '', lineNumber: -1 });
  for (const { space_name, space_used_size } of memory.spaces) builder.sum(`(${space_name})`, space_used_size, heap);
  addOutside(builder, memory);
  return builder.profile;
}

/** Adds the sampled allocations. Returns their sum in bytes. */
function addAllocations(builder: ProfileBuilder, { head, samples }: SampledHeap): number {
  const counts = new Map<number, number>();
  for (const { nodeId } of samples) counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  let sum = 0;
  const visit = (node: SampledNode, caller: number) => {
    const call = node === head ? caller : builder.call(caller, node.callFrame);
    builder.sample(call, counts.get(node.id) ?? 0, node.selfSize);
    sum += node.selfSize;
    for (const child of node.children) visit(child, call);
  };
  visit(head, builder.root);
  return sum;
}

function addOutside(builder: ProfileBuilder, { heap }: ThreadMemory): void {
  builder.sum('(buffers outside the heap)', heap.external_memory);
  builder.sum("(V8's own memory)", heap.malloced_memory);
}

class ProfileBuilder {
  /** Index of the call that represents the thread. */
  readonly root = 0;
  readonly #thread: string;
  readonly #calls: ProfiledCall[];
  readonly #samples: ProfiledSample[] = [];

  constructor(thread: string) {
    this.#thread = thread;
    this.#calls = [{ caller: -1, function: { name: thread, file: '', line: 0 } }];
  }

  get profile(): ThreadProfile {
    return { thread: this.#thread, calls: this.#calls, samples: this.#samples };
  }

  /** Adds a call. Returns its index. */
  call(
    caller: number,
    { functionName, url, lineNumber }: Omit<Runtime.CallFrame, 'scriptId' | 'columnNumber'>,
  ): number {
    const name = functionName === '' ? '(anonymous)' : sourceName(functionName);
    this.#calls.push({ caller, function: { name, ...sourcePlace(url, lineNumber + 1) } });
    return this.#calls.length - 1;
  }

  /** Adds a sample. `line` defaults to the function's first line. */
  sample(call: number, count: number, value: number, line = this.#calls[call]!.function.line): void {
    if (value > 0) this.#samples.push({ call, line, count, value });
  }

  /** Adds a total of the thread. */
  sum(name: string, value: number, caller = this.root): void {
    if (value > 0) this.sample(this.call(caller, { functionName: name, url: '', lineNumber: -1 }), 0, value);
  }
}
