// HTTP over a Unix socket: the addresses of its clients, and rules about addresses.

import { join } from 'node:path';
import type { Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  tempDir,
} from '../harness/index.js';

const ADDRESSES = ['REMOTE_ADDRESS', 'REMOTE_ADDRESS_WITHOUT_PORT', 'DIRECT_REMOTE_ADDRESS', 'LOCAL_ADDRESS'];

besideEnvoy('a client of a Unix socket has the address of the socket', async (t, program) => {
  const { socketPath } = await startOnUnixSocket(t, program, []);
  const { headers } = await httpRequest(0, '/', { socketPath });
  t.equal(headers['x-addresses'], ADDRESSES.map(() => socketPath).join(' '));
  t.equal(headers['x-port'], undefined, 'and no port');
});

for (const [permission, status] of [
  [{ destination_port: 0 }, 403],
  [{ destination_port_range: { start: 0, end: 65536 } }, 403],
  [{ not_rule: { destination_port_range: { start: 0, end: 65536 } } }, 200],
  [{ destination_ip: { address_prefix: '0.0.0.0', prefix_len: 0 } }, 403],
] as const) {
  besideEnvoy(`a Unix socket has no port and no IP address: ${JSON.stringify(permission)}`, async (t, program) => {
    const { socketPath } = await startOnUnixSocket(t, program, [allowing(permission)]);
    t.equal((await httpRequest(0, '/', { socketPath })).status, status);
  });
}

async function startOnUnixSocket(t: Test, program: ProxyProgram, filters: readonly Config[]) {
  const socketPath = join(tempDir(t), 'web.sock');
  const added = (key: string, value: string) => ({ header: { key, value } });
  const listener = httpListener('web', 0, {
    http_filters: [...filters, ROUTER_FILTER],
    route_config: {
      response_headers_to_add: [
        added('x-addresses', ADDRESSES.map((name) => `%DOWNSTREAM_${name}%`).join(' ')),
        added('x-port', '%DOWNSTREAM_REMOTE_PORT%'),
      ],
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, direct_response: { status: 200 } }] },
      ],
    },
  });
  const config = bootstrap({ listeners: [{ ...listener, address: { pipe: { path: socketPath } } }], clusters: [] });
  await startBaton(t, { ...program, config });
  return { socketPath };
}

function allowing(permission: Config): Config {
  const policies = { one: { permissions: [permission], principals: [{ any: true }] } };
  return {
    name: 'rbac',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC',
      rules: { action: 'ALLOW', policies },
    },
  };
}
