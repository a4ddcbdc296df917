// A connection that its network filter does not take is closed, though the filter has left it open.

import t from 'tap';
import { bootstrap, connectRaw, startBaton, UNBUNDLED } from '../harness/index.js';

t.test('nobody takes a connection', async (t) => {
  const echo = { '@type': 'type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo' };
  const baton = await startBaton(t, {
    program: UNBUNDLED,
    nodeArgs: ['--import', new URL('./refusing-filter.js', import.meta.url).href],
    config: bootstrap({
      listeners: [
        {
          name: 'main',
          stat_prefix: 'main',
          address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
          filter_chains: [{ filters: [{ name: 'refusing', typed_config: echo }] }],
        },
      ],
      clusters: [],
    }),
  });
  const connection = await connectRaw(t, await baton.listenerPort('main'));
  t.match(await connection.readToEnd(), { text: '', closed: 'end' });
  await baton.waitForStat('listener.main.downstream_cx_active', 0);
});
