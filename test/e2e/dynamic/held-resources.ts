// What a Baton under test retains for its configuration, measured inside the process: report-held-resources.ts is loaded into it.

import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type BatonOptions, UNBUNDLED } from '../harness/baton.js';
import { withDeadline } from '../harness/wait-for.js';

export interface Held {
  /** Shared words of clusters, hosts and listeners in use, and the highest one ever allocated. */
  readonly words: number;
  readonly highestWord: number;
  /** Number of references to stats scopes, and number of stats. */
  readonly scopes: number;
  readonly stats: number;
  /** Memory chunks of the stats, and the end of the primary's part of their directory. */
  readonly statsMemory: number;
  readonly directoryEnd: number;
  /** The heap of each thread that answered, after garbage collection; the primary's first. */
  readonly heaps: readonly HeldHeap[];
  readonly rssBytes: number;
}

export interface HeldHeap {
  readonly bytes: number;
  /** Compiled code and bytecode, which grow as the process runs, whatever it retains. */
  readonly codeBytes: number;
}

/** Returns the options of a Baton that answers readHeldResources(); `directory` is for a socket. */
export function heldReportOptions(directory: string): BatonOptions & { readonly socketPath: string } {
  const socketPath = join(directory, 'held');
  const module = new URL('./report-held-resources.js', import.meta.url).href;
  return {
    program: UNBUNDLED,
    nodeArgs: ['--expose-gc', '--import', module],
    env: { BATON_TEST_HELD: socketPath },
    socketPath,
  };
}

export function readHeldResources(socketPath: string): Promise<Held> {
  const answer = new Promise<Held>((resolve, reject) => {
    let text = '';
    const socket = connect(socketPath).setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('end', () => resolve(JSON.parse(text) as Held)).once('error', reject);
  });
  return withDeadline(answer, 'the report of the process');
}

export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}
