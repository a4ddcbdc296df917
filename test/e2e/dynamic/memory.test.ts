// Updates leave nothing behind: what they free is used again, whatever changes and however often.

import t from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import { type BatonProcess, startUpstream, tempDir, waitFor } from '../harness/index.js';
import { ChangingProxy } from './changing-proxy.js';
import { descriptorsOf, type Held, heldBy, reportingHeld } from './held.js';
import { StreamSource } from './sources.js';

/** Of five updates each. After the first ones everything has the size that it needs; multiples of six lead to the same state. */
const WARM_UP_ROUNDS = 60;
const ROUNDS = 180;

const DEADLINE_MS = 60_000;

t.test('a thousand updates of listeners, routes, clusters and endpoints', async (t) => {
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
  await proxy.rounds(WARM_UP_ROUNDS);
  const before = await atRest(baton, socketPath);
  await proxy.rounds(ROUNDS);
  const after = await atRest(baton, socketPath);
  t.same(countsOf(baton, after), countsOf(baton, before), 'as much is held as before');
  t.ok(after.highestWord - before.highestWord < 100, 'shared words are used again');
  for (const [thread, bytes] of after.heapBytes.entries()) {
    t.ok(bytes - (before.heapBytes[thread] ?? bytes) < MOST_GROWTH_BYTES, `heap of thread ${thread}`);
  }
  t.notMatch(baton.stderr, /\]\[(warning|error|critical)\]/);
  await baton.stop();
});

/** Of a heap: compiled code comes and goes; a kilobyte an update that stays is too much. */
const MOST_GROWTH_BYTES = 1_000_000;

/** What is held when nothing changes any more. */
async function atRest(baton: BatonProcess, socketPath: string): Promise<Held> {
  let last = '';
  let times = 0;
  const isSame = async (): Promise<Held | undefined> => {
    const held = await heldBy(socketPath);
    const counts = JSON.stringify(countsOf(baton, held));
    times = counts === last ? times + 1 : 0;
    last = counts;
    return times >= 2 ? held : undefined;
  };
  return await waitFor(isSame, { what: 'rest', deadlineMs: DEADLINE_MS });
}

function countsOf(baton: BatonProcess, { words, scopes, stats, statsMemory }: Held) {
  return { words, scopes, stats, statsMemory, descriptors: descriptorsOf(baton.pid) };
}
