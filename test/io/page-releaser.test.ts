// Unused memory of a thread is returned to the kernel.

import t from 'tap';
import { Memory, PIECE_BYTES } from '../../src/io/memory.js';
import { PageReleaser } from '../../src/io/page-releaser.js';
import { loadShim } from '../../src/io/shim.js';
import { openThreadIo } from '../../src/io/thread-io.js';
import { waitFor } from '../e2e/harness/index.js';

t.test('pages used in a burst are returned when no burst follows', async (t) => {
  const shim = loadShim();
  const memory = new Memory({ receiveBytes: 65_536, scratchBytes: 65_536, arenaBytes: 32 * 1024 * 1024 });
  const failed = (what: string, error: unknown) => t.fail(`${what}: ${error}`);
  const { timers, transport } = openThreadIo(shim, { memory, bufferLimit: 65_536, reserve: 0, failed });
  const observed: number[] = [];
  const releaser = new PageReleaser(transport, shim, ({ resident }) => observed.push(resident));
  t.teardown(() => {
    releaser.close();
    transport.destroy();
    timers.close();
  });
  transport.beginTurn();
  const blocks = Array.from({ length: 320 }, () => memory.retain(PIECE_BYTES));
  for (const block of blocks) memory.bytes.fill(1, block, block + PIECE_BYTES);
  for (const block of blocks) memory.release(block);
  t.ok(memory.use().resident >= 320 * PIECE_BYTES);
  await waitFor(() => observed.at(-1) === 0, { what: 'all pages to be returned' });
  t.ok(observed.length > 3, 'not at once: the next burst may follow soon');
  t.ok(
    // Pages at the ends may be shared with neighbouring data.
    blocks.every((block) => memory.bytes[block + PIECE_BYTES / 2] === 0),
    'the kernel has the pages',
  );
});
