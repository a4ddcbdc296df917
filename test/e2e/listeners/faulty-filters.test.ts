// Faulty network filters: a connection that its filter refuses is closed, though the filter has left it open, and a filter that
// throws in every callback is removed with the listener.

import t, { type Test } from 'tap';
import { type BatonProcess, bootstrap, connectRaw, startBaton, UNBUNDLED, waitFor } from '../harness/index.js';

t.test('a connection refused by its filter is closed', async (t) => {
  const baton = await startWith(t, 'thrift_proxy.router.v3.Router');
  const connection = await connectRaw(t, await baton.listenerPort('main'));
  t.match(await connection.readToEnd(), { text: '', closed: 'end' });
  await baton.waitForStat('listener.main.downstream_cx_active', 0);
});

t.test('a filter that throws when its listener is removed, and when it is notified of that', async (t) => {
  const baton = await startWith(t, 'generic_proxy.router.v3.Router');
  const port = await baton.listenerPort('main');
  const connections = [await connectRaw(t, port), await connectRaw(t, port)];
  await baton.waitForStat('listener.main.downstream_cx_active', 2);
  await baton.stop();
  for (const connection of connections) t.not((await connection.readToEnd()).closed, 'open');
  t.equal(baton.exit?.code, 0);
  t.notMatch(baton.stderr, 'unhandled promise rejection', 'the worker has exited cleanly');
});

t.test('a filter that throws in every callback of its connection', async (t) => {
  const baton = await startWith(t, 'generic_proxy.router.v3.Router');
  const connection = await connectRaw(t, await baton.listenerPort('main'));
  await baton.waitForStat('listener.main.downstream_cx_active', 1);
  connection.write('x');
  t.match(await connection.readToEnd(), { closed: 'reset' });
  await baton.waitForStats({
    'listener.main.downstream_cx_active': 0,
    'listener.main.downstream_cx_destroy': 1,
  });
});

const MISUSES = {
  before: -5,
  many: 1e12,
  beyond: 'not within',
  fraction: '.5',
  nothing: Number.NaN,
  yesterday: -1,
  never: 1e12,
};

t.test('an invalid range or close time of a filter closes its connection, and no other', async (t) => {
  const baton = await startWith(t, 'dubbo_proxy.router.v3.Router');
  const port = await baton.listenerPort('main');
  const other = await connectRaw(t, port);
  for (const [misuse, said] of Object.entries(MISUSES)) {
    const connection = await connectRaw(t, port);
    connection.write(misuse);
    t.match(await connection.readToEnd(), { text: '', closed: 'reset' }, misuse);
    await waitFor(() => baton.stderr.split('RangeError: ').at(-1)!.includes(String(said)), {
      what: `the log of ${misuse}`,
    });
  }
  other.write('echo');
  await other.readUntil('echo');
  await baton.waitForStat('listener.main.downstream_cx_active', 1);
  t.notMatch(baton.stderr, /worker \d+ died/);
});

function startWith(t: Test, message: string): Promise<BatonProcess> {
  const config = { '@type': `type.googleapis.com/envoy.extensions.filters.network.${message}` };
  return startBaton(t, {
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./faulty-filters.js', import.meta.url).href],
    config: bootstrap({
      listeners: [
        {
          name: 'main',
          stat_prefix: 'main',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [{ filters: [{ name: 'own', typed_config: config }] }],
        },
      ],
      clusters: [],
    }),
  });
}
