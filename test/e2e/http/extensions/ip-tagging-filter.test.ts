// ip_tagging: the tags of requests, by the addresses of their clients.

import { besideEnvoy } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  staticCluster,
} from '../../harness/index.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.ip_tagging.v3.IPTagging';
const range = (address_prefix: string, prefix_len: number) => ({ address_prefix, prefix_len });
const ip_tags = [
  { ip_tag_name: 'a.b', ip_list: [range('1.2.0.0', 16), range('2001:db8::', 32)] },
  { ip_tag_name: 'in', ip_list: [range('1.2.3.4', 32), range('10.0.0.0', 8)] },
  { ip_tag_name: 'zz', ip_list: [range('1.2.3.0', 24), range('10.1.0.0', 16)] },
];

besideEnvoy('requests get the tags of their client', async (t, program) => {
  const host = await startEchoUpstream(t);
  const filters: Record<string, Config> = {
    main: { ip_tags },
    internal: { ip_tags, request_type: 'INTERNAL' },
    external: { ip_tags, request_type: 'EXTERNAL' },
    own: { ip_tags, ip_tag_header: { header: 'X-Tags' } },
    more: { ip_tags, ip_tag_header: { header: 'X-Tags', action: 'APPEND_IF_EXISTS_OR_ADD' } },
  };
  const name = 'x-envoy-ip-tags';
  const tagged = { prefix: '/', headers: [{ name, string_match: { contains: 'in' } }] };
  const routes = [
    {
      match: tagged,
      route: { cluster: 'host' },
      request_headers_to_add: [{ header: { key: 'x-route', value: 'in' } }],
    },
    { match: { prefix: '/' }, route: { cluster: 'host' } },
  ];
  const listeners = Object.entries(filters).map(([listener, parts]) =>
    httpListener(listener, 0, {
      use_remote_address: true,
      xff_num_trusted_hops: 1,
      route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
      http_filters: [{ name: 'tags', typed_config: { '@type': TYPE, ...parts } }, ROUTER_FILTER],
    }),
  );
  const config = bootstrap({ listeners, clusters: [staticCluster('host', host.port)] });
  const baton = await startBaton(t, { ...program, config });
  const ask = async (listener: string, client: string, headers: Record<string, string | string[]> = {}) => {
    const answer = await httpRequest(await baton.listenerPort(listener), '/', {
      headers: { 'x-forwarded-for': client, ...headers },
    });
    return (JSON.parse(answer.body) as { headers: Record<string, string> }).headers;
  };
  /** Envoy does not define the order. */
  const tags = async (listener: string, client: string, field = name, headers: Record<string, string> = {}) =>
    (await ask(listener, client, headers))[field]?.split(',').sort();
  t.same(await tags('main', '1.2.3.4'), ['a.b', 'in', 'zz']);
  t.same(await tags('main', '1.2.9.9'), ['a.b']);
  t.same(await tags('main', '10.1.1.1'), ['in', 'zz']);
  t.same(await tags('main', '2001:db8::1'), ['a.b']);
  t.equal(await tags('main', '9.9.9.9', name, { [name]: 'spoof' }), undefined);
  t.equal((await ask('main', '10.2.1.1'))['x-route'], 'in', 'the route is matched again');
  t.equal((await ask('main', '1.2.9.9'))['x-route'], undefined);
  t.same(await tags('external', '10.2.1.1'), ['in']);
  t.equal(await tags('internal', '10.2.1.1'), undefined);
  t.same(await tags('own', '10.2.1.1', 'x-tags', { 'x-tags': 'old' }), ['in']);
  t.equal(await tags('own', '9.9.9.9', 'x-tags', { 'x-tags': 'old' }), undefined);
  t.same(await tags('more', '10.2.1.1', 'x-tags', { 'x-tags': 'old' }), ['in', 'old']);
  t.same(await tags('more', '9.9.9.9', 'x-tags', { 'x-tags': 'old' }), ['old']);
  const both = await ask('more', '10.2.1.1', { 'x-tags': ['one', 'two'] });
  t.same(both['x-tags']!.split(/, ?/).sort(), ['in', 'one', 'two']);
  await baton.waitForStats({
    ...{ 'http.main.ip_tagging.total': 7, 'http.main.ip_tagging.no_hit': 1, 'http.main.ip_tagging.a.b.hit': 4 },
    ...{ 'http.main.ip_tagging.in.hit': 3, 'http.main.ip_tagging.zz.hit': 2, 'http.external.ip_tagging.total': 1 },
  });
});
