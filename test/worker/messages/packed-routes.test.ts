// Workers unpack route configurations in small steps, and each unchanged piece only once.

import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import t from 'tap';
import { runSync } from '../../../src/common/time/next-turn.js';
import type { RouteConfiguration, VirtualHost } from '../../../src/config/generated/api.js';
import {
  BATCH,
  type PackedRoutes,
  packRoutes,
  type UnpackedRoutes,
  unpackRoutes,
} from '../../../src/worker/messages/packed-routes.js';

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

t.test('everything arrives in order', async (t) => {
  const cases: RouteConfiguration[] = [
    { name: 'none', virtual_hosts: [] },
    { name: 'short', internal_only_headers: ['x-a'], virtual_hosts: hosts(2, 1) },
    {
      name: 'long',
      validate_clusters: false,
      virtual_hosts: [...hosts(1000, 1), ...hosts(1, 3 * BATCH), ...hosts(7, 0)],
    },
  ];
  for (const config of cases) t.strictSame(runSync(unpackRoutes(sent(packRoutes(config)))).config, config);
});

t.test('a piece has few routes, unless a single virtual host has more', async (t) => {
  const counts = ({ virtual_hosts: of = [] }: RouteConfiguration) => of.map(({ routes = [] }) => routes.length);
  const packed = packRoutes({ virtual_hosts: [...hosts(200, 3), ...hosts(1, 500), ...hosts(100, 0)] });
  t.equal(packed.routes, 200 * 3 + 500 + 100);
  for (const piece of packed.pieces) {
    const [first, ...others] = counts(runSync(unpackRoutes({ ...packed, pieces: [piece] })).config);
    const sum = others.reduce((total, count) => total + Math.max(1, count), Math.max(1, first!));
    t.ok(sum <= BATCH || others.length === 0, `${sum} routes`);
  }
});

t.test('virtual hosts are unpacked once while others are added, removed or changed', async (t) => {
  const before = hosts(1000, 1);
  const config = { name: 'routes', virtual_hosts: before };
  const first = packRoutes(config);
  const unpacked = runSync(unpackRoutes(sent(first)));
  const changed = { ...before[700]!, domains: ['other.com'] };
  const added = hosts(1001, 1).at(-1)!;
  for (const [what, virtual_hosts] of Object.entries({
    added: [...before, added],
    inserted: [...before.slice(0, 500), added, ...before.slice(500)],
    removed: before.filter((_, index) => index !== 300),
    changed: before.with(700, changed),
  })) {
    const steps = unpackRoutes(sent(packRoutes({ name: 'routes', virtual_hosts }, first)), unpacked);
    let count = 0;
    let next = steps.next();
    for (; !next.done; next = steps.next()) count++;
    const { config } = next.value as UnpackedRoutes;
    t.strictSame(config.virtual_hosts, virtual_hosts, what);
    t.ok(count >= 1 && count <= 4, `${what}: ${count} pieces are unpacked`);
    const known = new Set(unpacked.config.virtual_hosts);
    t.ok(config.virtual_hosts!.filter((host) => known.has(host)).length > 800, `${what}: others are the same objects`);
  }
});

t.test('virtual hosts are unpacked again when the settings common to all have changed', async (t) => {
  const virtual_hosts = hosts(100, 1);
  const first = packRoutes({ name: 'routes', virtual_hosts });
  const unpacked = runSync(unpackRoutes(first));
  const second = packRoutes({ name: 'routes', virtual_hosts, request_headers_to_remove: ['x-a'] }, first);
  const known = new Set(unpacked.config.virtual_hosts);
  t.notOk(runSync(unpackRoutes(second, unpacked)).config.virtual_hosts!.some((host) => known.has(host)));
});
