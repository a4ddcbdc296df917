// Updates leave nothing behind: what they free is used again, whatever changes and however often.

import { isDeepStrictEqual } from 'node:util';
import t from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import { startUpstream, tempDir, waitFor } from '../harness/index.js';
import { ChangingProxy } from './changing-proxy.js';
import { descriptorsOf, type Held, heldBy, reportingHeld } from './held.js';
import { StreamSource } from './sources.js';

/** Of five updates each. After the first ones everything has the size that it needs; multiples of six lead to the same state. */
const WARM_UP_ROUNDS = 60;
const ROUNDS = 120;

const DEADLINE_MS = 60_000;

t.test('hundreds of updates of listeners, routes, clusters and endpoints', async (t) => {
  const upstreams = [await startUpstream(t, (_, answer) => void answer.end())];
  upstreams.push(await startUpstream(t, (_, answer) => void answer.end()));
  const { socketPath, ...options } = reportingHeld(tempDir(t));
  const proxy = await ChangingProxy.start(t, new StreamSource(await startControlPlane(t), 'sotw'), {
    ...options,
    origins: upstreams.map(({ port }) => port),
    tcpOrigin: upstreams[0]!.port,
    args: ['-l', 'warning', '--drain-time-s', '0'],
  });
  const { baton } = proxy;
  const { scopes, words } = await heldBy(socketPath);
  await proxy.rounds(WARM_UP_ROUNDS);
  // What the last updates have replaced goes when nobody uses it any more.
  const before = await heldWhen((held) => held.words === words && held.scopes === scopes, 'as at the start');
  const { descriptors: descriptorsBefore, ...countsWithout } = countsOf(before);
  await proxy.rounds(ROUNDS);
  // Connections to the origins may have been closed since, and none may have come.
  const after = await heldWhen(
    (held) => {
      const { descriptors, ...counts } = countsOf(held);
      return isDeepStrictEqual(counts, countsWithout) && descriptors <= descriptorsBefore;
    },
    JSON.stringify({ ...countsWithout, descriptors: descriptorsBefore }),
  );
  t.ok(after.highestWord - before.highestWord < 100, 'shared words are used again');
  for (const [thread, heap] of after.heaps.entries()) {
    const [first, last] = [before.heaps[thread] ?? heap, heap].map(({ bytes, codeBytes }) => bytes - codeBytes);
    t.ok(last! - first! < MOST_GROWTH_BYTES, `heap of thread ${thread} without its code: ${first} to ${last}`);
  }
  t.notMatch(baton.stderr, /\]\[(warning|error|critical)\]/);
  await baton.stop();

  function countsOf({ words, scopes, stats, statsMemory }: Held) {
    return { words, scopes, stats, statsMemory, descriptors: descriptorsOf(baton.pid) };
  }

  /** What is held as soon as it is as it should be. */
  async function heldWhen(isMeant: (held: Held) => boolean, what: string): Promise<Held> {
    let last: Held | undefined;
    const met = async () => isMeant((last = await heldBy(socketPath))) && last;
    return await waitFor(met, { what: `held: ${what}`, deadlineMs: DEADLINE_MS }).catch((error: unknown) => {
      throw new Error(`held at last: ${last && JSON.stringify(countsOf(last))}`, { cause: error });
    });
  }
});

/** Of a heap: a kilobyte an update that stays is too much. */
const MOST_GROWTH_BYTES = 700_000;
