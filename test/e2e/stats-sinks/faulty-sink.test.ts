// A faulty stats sink: the log has the position of the fault, and the server continues.

import t, { type Test } from 'tap';
import {
  type BatonProcess,
  bootstrap,
  startBaton,
  startUpstream,
  staticCluster,
  UNBUNDLED,
  waitForLog,
} from '../harness/index.js';

const PLACE = 'faulty-sink\\.';
const FAULTS: Record<string, RegExp> = {
  rejection: new RegExp(
    `internal error: unhandled promise rejection: TypeError: a promise is left behind\\n.*${PLACE}`,
  ),
  answer:
    /internal error: TypeError: a mistake in onAnswer\(\)(\n.*)*\n.*internal error: TypeError: a mistake in onAnswer\(\)/,
  exception: new RegExp(
    `stats sink 'own' has lost a part of a flush: TypeError: a mistake in flush\\(\\) at .*${PLACE}`,
  ),
};

const upstream = await startUpstream(t, (_request, answer) => void answer.end('fine'));

for (const [fault, message] of Object.entries(FAULTS)) {
  t.test(`${fault} of a sink is logged with its position`, async (t) => {
    const baton = await startFaulty(t, fault, 'live');
    await waitForLog(baton, message);
    t.match(await baton.admin('/ready'), { body: 'LIVE\n' });
    t.equal((await baton.stat('server.envoy_bug_failures'))! > 0, fault !== 'exception');
    t.notMatch(baton.stderr, 'no answer:', 'a call that was answered is not reported as failed');
    await baton.stop();
    t.equal(baton.exit?.code, 0);
  });
}

t.test('a sink that is never created is named, because the server waits for it', async (t) => {
  const baton = await startFaulty(t, 'creation', 'admin');
  await waitForLog(baton, "the server waits for the stats sink 'own', which has not been created yet");
  t.match(await baton.admin('/ready'), { body: 'PRE_INITIALIZING\n' });
  await baton.stop();
  t.equal(baton.exit?.code, 0);
});

function startFaulty(t: Test, fault: string, wait: 'live' | 'admin'): Promise<BatonProcess> {
  const config = { '@type': 'type.googleapis.com/envoy.extensions.stat_sinks.wasm.v3.Wasm', config: { name: fault } };
  return startBaton(t, {
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./faulty-sink.js', import.meta.url).href],
    config: {
      ...bootstrap({ listeners: [], clusters: [staticCluster('host', upstream.port)] }),
      stats_flush_interval: '0.05s',
      stats_sinks: [{ name: 'own', typed_config: config }],
    },
    wait,
  });
}
