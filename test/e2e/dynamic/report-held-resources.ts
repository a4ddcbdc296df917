// Loaded into Baton before its own code (--import): reports to each client of BATON_TEST_HELD what the process retains, after
// garbage collection (--expose-gc).

import { createServer } from 'node:net';
import { getHeapCodeStatistics } from 'node:v8';
import { BroadcastChannel, isMainThread, threadId } from 'node:worker_threads';
import { StatsStore } from '../../../src/stats/store.js';
import { CLUSTER_WORDS, HOST_WORDS, LISTENER_WORDS, SharedWordsOwner } from '../../../src/upstream/shared-words.js';
import type { Held, HeldHeap } from './held-resources.js';

/** How long other threads may take to collect their garbage. */
const ANSWER_MS = 1000;

/** Message to the other threads, which also receive each other's. */
const COLLECT = 'collect';

const channel = new BroadcastChannel('held');

if (isMainThread) reportHeld(process.env['BATON_TEST_HELD']!);
else {
  channel.onmessage = ({ data }) => {
    if (data === COLLECT) channel.postMessage({ threadId, heap: heldHeap() });
  };
}
// Does not keep threads alive.
channel.unref();

function reportHeld(path: string): void {
  const words = countWords();
  const stats = countStats();
  const heaps = new Map<number, HeldHeap>();
  const server = createServer((socket) => {
    heaps.clear();
    heaps.set(0, heldHeap());
    channel.postMessage(COLLECT);
    setTimeout(() => {
      const held: Held = {
        ...words,
        ...stats(),
        heaps: [...heaps].sort(([one], [other]) => one - other).map(([, heap]) => heap),
        rssBytes: process.memoryUsage.rss(),
      };
      socket.end(JSON.stringify(held));
    }, ANSWER_MS);
  });
  channel.onmessage = ({ data }) => {
    const { threadId: thread, heap } = data as { threadId: number; heap: HeldHeap };
    heaps.set(thread, heap);
  };
  server.listen(path).unref();
}

/** Returns the number of words of clusters, hosts and listeners in use, and the highest ever allocated. */
function countWords(): { words: number; highestWord: number } {
  const count = { words: 0, highestWord: 0 };
  const owner = SharedWordsOwner.prototype;
  const allocations = {
    allocateCluster: CLUSTER_WORDS,
    allocateHost: HOST_WORDS,
    allocateListener: LISTENER_WORDS,
  } as const;
  for (const [name, size] of Object.entries(allocations) as [keyof typeof allocations, number][]) {
    const allocate = owner[name];
    owner[name] = function (this: SharedWordsOwner): number {
      const block = Reflect.apply(allocate, this, []);
      count.words += size;
      count.highestWord = Math.max(count.highestWord, block + size);
      return block;
    };
  }
  const retirements = { retireCluster: CLUSTER_WORDS, retireHost: HOST_WORDS, retireListener: LISTENER_WORDS };
  for (const [name, size] of Object.entries(retirements)) {
    const methods = owner as unknown as Record<string, ((block: number, version: number) => void) | undefined>;
    const retire = methods[name];
    if (retire === undefined) continue;
    methods[name] = function (this: SharedWordsOwner, block: number, version: number): void {
      Reflect.apply(retire, this, [block, version]);
      count.words -= size;
    };
  }
  return count;
}

/** Counts scopes by their references, stats, and the memory of the primary's names and texts. */
function countStats(): () => Pick<Held, 'scopes' | 'stats' | 'statsMemory' | 'directoryEnd'> {
  let store: StatsStore | undefined;
  let scopes = 0;
  const { addScope, removeScope } = StatsStore.prototype;
  StatsStore.prototype.addScope = function (this: StatsStore, ...parameters) {
    store = this;
    scopes++;
    return Reflect.apply(addScope, this, parameters);
  };
  StatsStore.prototype.removeScope = function (this: StatsStore, ref) {
    scopes--;
    Reflect.apply(removeScope, this, [ref]);
  };
  return () => ({
    scopes,
    stats: store?.size ?? 0,
    statsMemory: store?.version ?? 0,
    directoryEnd: store?.own.range.end() ?? 0,
  });
}

function heldHeap(): HeldHeap {
  globalThis.gc!();
  const { code_and_metadata_size: compiled, bytecode_and_metadata_size: bytecode } = getHeapCodeStatistics();
  return { bytes: process.memoryUsage().heapUsed, codeBytes: compiled + bytecode };
}
