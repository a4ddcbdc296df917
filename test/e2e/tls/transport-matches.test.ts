// Transport sockets that follow from the metadata of endpoints and localities.

import { Authority } from '../harness/certificates.js';
import { besideEnvoy } from '../harness/envoy.js';
import { type Config, loopback } from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';
import { clientTls, startPlainHost } from './contexts.js';
import { startNegotiatingHost } from './negotiating-host.js';

const root = await Authority.create();
const server = await root.issue({ names: ['server.test'] });

const RAW = {
  name: 'raw',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer' },
};

const metadata = (labels: Config | undefined) =>
  labels && { metadata: { filter_metadata: { 'envoy.transport_socket_match': labels } } };

besideEnvoy('the first match of an endpoint, or else of its locality, is its transport socket', async (t, program) => {
  const secure = await startNegotiatingHost(t, server, {}, (request, answer) =>
    answer.end(String((request.socket as { servername?: string }).servername)),
  );
  const plain = await startPlainHost(t, (_, answer) => answer.end('plain'));
  const tls = (sni: string) => clientTls({}, { sni });
  const matches = [
    { name: 'both', match: { tls: 'yes', n: 1 }, transport_socket: tls('both.test') },
    { name: 'one', match: { tls: 'yes' }, transport_socket: tls('one.test') },
    { name: 'raw', match: { tls: false }, transport_socket: RAW },
  ];
  const rows: readonly [name: string, endpoint: Config | undefined, locality: Config | undefined, found: string][] = [
    ['both', { tls: 'yes', n: 1, more: 'x' }, undefined, 'both.test'],
    ['other-number', { tls: 'yes', n: 2 }, undefined, 'one.test'],
    ['text', { tls: 'yes', n: '1' }, undefined, 'one.test'],
    ['locality', undefined, { tls: 'yes' }, 'one.test'],
    ['other-endpoint', { x: 1 }, { tls: 'yes' }, 'one.test'],
    ['endpoint-first', { tls: false }, { tls: 'yes', n: 1 }, 'plain'],
    ['none', { tls: 'no' }, undefined, 'own.test'],
    ['no-metadata', undefined, undefined, 'own.test'],
  ];
  const proxy = await startProxy(t, {
    ...program,
    listeners: { main: managerOf(rows.map(([name]) => routeTo({ path: `/${name}` }, name))) },
    clusters: rows.map(([name, endpoint, locality, found]) => ({
      name,
      connect_timeout: '2s',
      transport_socket: tls('own.test'),
      transport_socket_matches: matches,
      load_assignment: {
        cluster_name: name,
        endpoints: [
          {
            ...metadata(locality),
            lb_endpoints: [
              { endpoint: { address: loopback(found === 'plain' ? plain : secure.port) }, ...metadata(endpoint) },
            ],
          },
        ],
      },
    })),
  });
  for (const [name, , , found] of rows) {
    t.equal((await proxy.get(`/${name}`)).body, found, name);
    const stats = await proxy.baton.stats(`cluster.${name}.`);
    const counted = ['both', 'one', 'raw', 'default'].filter((each) => stats[`${each}.total_match_count`] === 1);
    t.same(counted, [{ plain: 'raw', 'own.test': 'default' }[found] ?? found.replace('.test', '')], name);
  }
});

besideEnvoy('a match without fields selects every host', async (t, program) => {
  const secure = await startNegotiatingHost(t, server);
  const proxy = await startProxy(t, {
    ...program,
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')]) },
    clusters: [
      {
        name: 'host',
        connect_timeout: '2s',
        transport_socket_matches: [{ name: 'any', match: {}, transport_socket: clientTls() }],
        load_assignment: {
          cluster_name: 'host',
          endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(secure.port) } }] }],
        },
      },
    ],
  });
  t.equal((await proxy.get('/')).status, 200);
  t.equal(secure.sockets.length, 1);
});
