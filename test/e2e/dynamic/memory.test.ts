// Updates leak nothing: what they free is reused, whatever changes and however often.

import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import { startUpstream, tempDir, waitFor } from '../harness/index.js';
import { ChangingProxy } from './changing-proxy.js';
import { descriptorsOf, type Held, heldReportOptions, readHeldResources } from './held-resources.js';
import { StreamSource } from './sources.js';

/** Rounds of five updates each. After the first ones everything has its final size; multiples of six lead to the same state. */
const WARM_UP_ROUNDS = 60;
const ROUNDS = 120;

const DEADLINE_MS = 60_000;

t.test('hundreds of updates of listeners, routes, clusters and endpoints leak no memory', async (t) => {
  const upstreams = [await startUpstream(t, (_, answer) => void answer.end())];
  upstreams.push(await startUpstream(t, (_, answer) => void answer.end()));
  const { socketPath, ...options } = heldReportOptions(tempDir(t));
  const proxy = await ChangingProxy.start(t, new StreamSource(await startControlPlane(t), 'sotw'), {
    ...options,
    origins: upstreams.map(({ port }) => port),
    tcpOrigin: upstreams[0]!.port,
    args: ['-l', 'warning', '--drain-time-s', '0'],
  });
  const { baton } = proxy;
  const { scopes, words } = await readHeldResources(socketPath);
  await proxy.rounds(WARM_UP_ROUNDS);
  // What the last updates replaced is released when its last user is gone.
  const before = await heldWhen((held) => held.words === words && held.scopes === scopes, 'as at the start');
  const { descriptors: descriptorsBefore, ...countsWithout } = countsOf(before);
  await proxy.rounds(ROUNDS);
  // Connections to the origins may have closed since, and none may have been added.
  const after = await heldWhen(
    (held) => {
      const { descriptors, ...counts } = countsOf(held);
      return isDeepStrictEqual(counts, countsWithout) && descriptors <= descriptorsBefore;
    },
    JSON.stringify({ ...countsWithout, descriptors: descriptorsBefore }),
  );
  t.ok(after.highestWord - before.highestWord < 100, 'shared words are reused');
  for (const [thread, heap] of after.heaps.entries()) {
    const [first, last] = [before.heaps[thread] ?? heap, heap].map(({ bytes, codeBytes }) => bytes - codeBytes);
    t.ok(last! - first! < MAX_GROWTH_BYTES, `heap of thread ${thread} without its code: ${first} to ${last}`);
  }
  t.notMatch(baton.stderr, /\]\[(warning|error|critical)\]/);
  await baton.stop();

  function countsOf({ words, scopes, stats, statsMemory }: Held) {
    return { words, scopes, stats, statsMemory, descriptors: descriptorsOf(baton.pid) };
  }

  /** Returns the report of the process once it meets the condition. */
  async function heldWhen(isMeant: (held: Held) => boolean, what: string): Promise<Held> {
    let last: Held | undefined;
    const met = async () => isMeant((last = await readHeldResources(socketPath))) && last;
    return await waitFor(met, { what: `held: ${what}`, deadlineMs: DEADLINE_MS }).catch((error: unknown) => {
      throw new Error(`held at last: ${last && JSON.stringify(countsOf(last))}`, { cause: error });
    });
  }
});

/** Growth of a heap: one retained kilobyte per update is too much. */
const MAX_GROWTH_BYTES = 700_000;
