// What a Baton under test holds for its configuration, from inside: report-held.ts is loaded into it.

import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type BatonOptions, UNBUNDLED } from '../harness/baton.js';
import { withDeadline } from '../harness/wait-for.js';

export interface Held {
  /** Shared words of clusters, hosts and listeners, and the highest one that was ever given out. */
  readonly words: number;
  readonly highestWord: number;
  /** How often scopes of stats are held, and how many stats there are. */
  readonly scopes: number;
  readonly stats: number;
  /** Chunks of memory that the stats have, and where the primary's part of their directory ends. */
  readonly statsMemory: number;
  readonly directoryEnd: number;
  /** Of each thread that answered, the primary first, after collecting garbage. */
  readonly heaps: readonly HeldHeap[];
  readonly rssBytes: number;
}

export interface HeldHeap {
  readonly bytes: number;
  /** Compiled code and bytecode, which come as the process runs, whatever it holds. */
  readonly codeBytes: number;
}

/** Options with which a Baton answers heldBy(); `directory` is for a socket. */
export function reportingHeld(directory: string): BatonOptions & { readonly socketPath: string } {
  const socketPath = join(directory, 'held');
  const module = new URL('./report-held.js', import.meta.url).href;
  return {
    program: UNBUNDLED,
    nodeArgs: ['--expose-gc', '--import', module],
    env: { BATON_TEST_HELD: socketPath },
    socketPath,
  };
}

export function heldBy(socketPath: string): Promise<Held> {
  const answer = new Promise<Held>((resolve, reject) => {
    let text = '';
    const socket = connect(socketPath).setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('end', () => resolve(JSON.parse(text) as Held)).once('error', reject);
  });
  return withDeadline(answer, 'what is held');
}

export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
