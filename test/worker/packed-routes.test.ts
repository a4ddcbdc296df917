// What workers unpack is what the primary has packed, and never much of it at once.

import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import t from 'tap';
import { atOnce } from '../../src/common/next-turn.js';
import type { RouteConfiguration, VirtualHost } from '../../src/config/generated/api.js';
import { BATCH, type PackedRoutes, packRoutes, unpackRoutes } from '../../src/worker/packed-routes.js';

const hosts = (count: number, routes: number): VirtualHost[] =>
  Array.from({ length: count }, (_, index) => ({
    name: `höst-${index}`,
    domains: [`host-${index}.com`],
    routes: Array.from({ length: routes }, (_, route) => ({
      match: { prefix: `/${route}` },
      direct_response: { status: 200, body: { inline_string: 'ÿ€' } },
    })),
  }));

function sent(packed: PackedRoutes): PackedRoutes {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(packed);
  const { message } = receiveMessageOnPort(port2) as { message: PackedRoutes };
  port1.close();
  return message;
}

t.test('everything arrives, in its order', async (t) => {
  const cases: RouteConfiguration[] = [
    { name: 'none', virtual_hosts: [] },
    { name: 'short', internal_only_headers: ['x-a'], virtual_hosts: hosts(2, 1) },
    {
      name: 'long',
      validate_clusters: false,
      virtual_hosts: [...hosts(1000, 1), ...hosts(1, 3 * BATCH), ...hosts(7, 0)],
    },
  ];
  for (const config of cases) t.strictSame(atOnce(unpackRoutes(sent(packRoutes(config)))), config);
});

t.test('a piece has few routes, unless they are those of one virtual host', async (t) => {
  const counts = ({ virtual_hosts: of = [] }: RouteConfiguration) => of.map(({ routes = [] }) => routes.length);
  const packed = packRoutes({ virtual_hosts: [...hosts(200, 3), ...hosts(1, 500), ...hosts(100, 0)] });
  t.equal(packed.routes, 200 * 3 + 500 + 100);
  for (const piece of packed.pieces) {
    const [first, ...others] = counts(atOnce(unpackRoutes({ ...packed, pieces: [piece] })));
    const sum = others.reduce((total, count) => total + Math.max(1, count), Math.max(1, first!));
    t.ok(sum <= BATCH || others.length === 0, `${sum} routes`);
  }
});
