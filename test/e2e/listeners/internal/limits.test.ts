// Limits of connections from outside do not apply to internal listeners, as in Envoy 1.40; their own limit does.

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import { type Config, connectRaw, httpListener, httpRequest, startBaton, tempDir } from '../../harness/index.js';
import { answering, managerOf, routeTo } from '../../http/proxy.js';
import { internal, internalBootstrap, internalCluster } from './config.js';

const MONITORS = 'type.googleapis.com/envoy.extensions.resource_monitors';

async function start(t: Test, program: ProxyProgram, extra: Config) {
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1'],
    config: internalBootstrap(
      [
        httpListener('front', 0, managerOf([routeTo({ prefix: '/' }, 'inner')])),
        internal(httpListener('inner', 0, managerOf([answering({ prefix: '/' }, 'inner')]))),
      ],
      [internalCluster('inner', 'inner')],
      extra,
    ),
  });
  return { baton, port: await baton.listenerPort('front') };
}

const layer = (values: Config) => ({ layered_runtime: { layers: [{ name: 'limits', static_layer: values }] } });

besideEnvoy('a limit of one connection permits the internal connection of that one', async (t, program) => {
  const typed_config = {
    '@type': `${MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig`,
    max_active_downstream_connections: 1,
  };
  const name = 'envoy.resource_monitors.global_downstream_max_connections';
  const { port } = await start(t, program, { overload_manager: { resource_monitors: [{ name, typed_config }] } });
  t.match(await httpRequest(port), { status: 200, body: 'inner' });
});

besideEnvoy(
  'under pressure, requests of clients that are connected still reach internal listeners',
  async (t, program) => {
    const directory = tempDir(t);
    const filename = join(directory, 'pressure');
    writeFileSync(filename, '0');
    const monitor = 'envoy.resource_monitors.injected_resource';
    const typed_config = { '@type': `${MONITORS}.injected_resource.v3.InjectedResourceConfig`, filename };
    const triggers = [{ name: monitor, threshold: { value: 0.9 } }];
    const { baton, port } = await start(t, program, {
      overload_manager: {
        refresh_interval: '0.05s',
        resource_monitors: [{ name: monitor, typed_config }],
        actions: ['stop_accepting_connections', 'reject_incoming_connections'].map((action) => ({
          name: `envoy.overload_actions.${action}`,
          triggers,
        })),
      },
    });
    const client = await connectRaw(t, port);
    await baton.waitForStats({ 'listener.front.downstream_cx_active': 1 });
    writeFileSync(join(directory, 'next'), '1');
    renameSync(join(directory, 'next'), filename);
    await baton.waitForStats({ 'overload.envoy.overload_actions.stop_accepting_connections.active': 1 });
    client.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    t.match((await client.readToEnd()).text, /^HTTP\/1\.1 200 /);
  },
);

t.test('the limit of an internal listener itself is obeyed', async (t) => {
  const limit = layer({ 'envoy.resource_limits.listener.inner.connection_limit': 0 });
  const { baton, port } = await start(t, { command: undefined }, limit);
  t.match(await httpRequest(port), { status: 503 });
  await baton.waitForStats({ 'listener.envoy_internal_inner.downstream_cx_overflow': 1 });
});
