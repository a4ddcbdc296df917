// enable_dispatcher_stats: histograms of the turns of each thread's event loop, under Envoy's names.

import { besideEnvoy } from '../harness/envoy.js';
import { bootstrap, httpListener, startBaton, waitFor } from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const NAMES = ['listener_manager.worker_0', 'server'].flatMap((thread) =>
  ['loop_duration_us', 'poll_delay_us'].map((name) => `${thread}.dispatcher.${name}`),
);

besideEnvoy('turns of the event loops are measured', async (t, program) => {
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [httpListener('main', 0, managerOf([answering({ prefix: '/' }, 'ok')]))],
      clusters: [],
      extra: { enable_dispatcher_stats: true, stats_flush_interval: '0.1s' },
    }),
    args: ['-l', 'warning', '--concurrency', '1'],
  });
  const found = await waitFor(
    async () => {
      const { body } = await baton.admin('/stats?usedonly&filter=dispatcher');
      return NAMES.every((name) => body.includes(`${name}: P0(`)) ? body : undefined;
    },
    { what: 'samples of both threads' },
  );
  t.same([...found.matchAll(/^(.*): P0/gm)].map(([, name]) => name).sort(), NAMES);
});

besideEnvoy('without it they do not exist', async (t, program) => {
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [], clusters: [] }) });
  t.equal((await baton.admin('/stats?filter=dispatcher')).body, '');
});
