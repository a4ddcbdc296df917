// CORS policies that change under traffic, with their routes, and with the filter itself.

import { writeFileSync } from 'node:fs';
import t from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { allowing, CORS_FILTER, corsPolicy } from '../http/extensions/cors.js';
import { routeTo } from '../http/proxy.js';
import { ResourceFile } from './resource-file.js';

const ROUTES = 'envoy.config.route.v3.RouteConfiguration';
const EXTENSION = 'envoy.config.core.v3.TypedExtensionConfig';
const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const PAGES = ['http://one', 'http://two'];
const upstream = await startUpstream(t, (_request, answer) => void answer.end());
const host = staticCluster('host', upstream.port);

const virtualHost = (more: Config): Config => ({
  name: 'all',
  domains: ['*'],
  routes: [routeTo({ prefix: '/' }, 'host')],
  ...more,
});
const routes = (more: Config): Config => ({ name: 'routes', virtual_hosts: [virtualHost(more)] });

/** Returns the pages that may read responses, on a new connection for each. */
async function allowedBy(port: number, headers: Record<string, string> = {}): Promise<string[]> {
  const answers = await Promise.all(PAGES.map((origin) => httpRequest(port, '/', { headers: { ...headers, origin } })));
  return PAGES.filter((page, index) => answers[index]!.headers['access-control-allow-origin'] === page);
}

/** Waits until eight checks in a row, over all workers, give this result. */
async function waitForPages(port: number, expected: string[]): Promise<void> {
  const isSo = async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => allowedBy(port)));
    return all.every((each) => each.join() === expected.join());
  };
  await waitFor(isSo, { what: `responses for ${expected.join() || 'nobody'}` });
}

t.test('policies change with their routes, and an invalid one leaves the previous one in use', async (t) => {
  const file = new ResourceFile(tempDir(t), 'routes');
  file.write(ROUTES, routes({ cors: allowing(PAGES[0]!) }));
  const rds = { route_config_name: 'routes', config_source: file.source };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [
        httpListener('main', 0, { rds, http_filters: [CORS_FILTER, ROUTER_FILTER] }),
        httpListener('plain', 0, { rds }),
        httpListener('disabled', 0, { rds, http_filters: [{ ...CORS_FILTER, disabled: true }, ROUTER_FILTER] }),
      ],
      clusters: [host],
    }),
    args: ['-l', 'info', '--concurrency', '2'],
  });
  const port = await baton.listenerPort('main');
  const others = [await baton.listenerPort('plain'), await baton.listenerPort('disabled')];
  await waitForPages(port, [PAGES[0]!]);
  for (const other of others) t.same(await allowedBy(other), []);
  file.write(ROUTES, routes(corsPolicy(allowing(PAGES[1]!))));
  await waitForPages(port, [PAGES[1]!]);
  t.same(await allowedBy(others[0]!), []);
  await waitForPages(others[1]!, [PAGES[1]!]);
  file.write(ROUTES, routes({ cors: { allow_origin_string_match: [{ safe_regex: { regex: '(' } }] } }));
  await baton.waitForStat('http.main.rds.routes.update_rejected', 1);
  await waitForPages(port, [PAGES[1]!]);
  file.write(ROUTES, routes({}));
  await waitForPages(port, []);
});

t.test('a discovered filter accepts route policies of both kinds', async (t) => {
  const directory = tempDir(t);
  const file = new ResourceFile(directory, 'filters');
  const cors = { name: 'cors', typed_config: CORS_FILTER['typed_config'] };
  const buffer = {
    name: 'cors',
    typed_config: { '@type': `${FILTERS}.buffer.v3.Buffer`, max_request_bytes: 1000 },
  };
  file.write(EXTENSION, cors);
  const type_urls = [`${FILTERS}.buffer.v3.Buffer`, `${FILTERS}.cors.v3.Cors`];
  const discovered = { name: 'cors', config_discovery: { config_source: file.source, type_urls } };
  const manager = (more: Config) => ({ route_config: routes(more), http_filters: [discovered, ROUTER_FILTER] });
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [
        httpListener('field', 0, manager({ cors: allowing(PAGES[0]!) })),
        httpListener('typed', 0, manager(corsPolicy(allowing(PAGES[1]!)))),
      ],
      clusters: [host],
    }),
    args: ['-l', 'warning', '--concurrency', '2'],
  });
  const [field, typed] = [await baton.listenerPort('field'), await baton.listenerPort('typed')];
  t.same(await allowedBy(field!), [PAGES[0]!], 'no request is served before the configuration arrives');
  t.same(await allowedBy(typed!), [PAGES[1]!]);
  await waitForCounts(baton, 'field', 1);
  t.notMatch(baton.stderr, /it has no effect/);
  file.write(EXTENSION, buffer);
  await waitForPages(field!, []);
  await waitForPages(typed!, []);
  file.write(EXTENSION, cors);
  await waitForPages(field!, [PAGES[0]!]);
  await waitForPages(typed!, [PAGES[1]!]);
});

t.test('a reload of the bootstrap replaces policies, those of scopes included', async (t) => {
  const scope = (name: string, more: Config) => ({
    name,
    key: { fragments: [{ string_key: name }] },
    route_configuration: routes(more),
  });
  const config = (first: Config, second: Config) => {
    const scoped_routes = {
      name: 'scopes',
      scope_key_builder: { fragments: [{ header_value_extractor: { name: 'x-scope', index: 0 } }] },
      scoped_route_configurations_list: {
        scoped_route_configurations: [scope('one', first), scope('two', second)],
      },
    };
    const http_filters = [CORS_FILTER, ROUTER_FILTER];
    return bootstrap({
      listeners: [
        httpListener('main', 0, { route_config: routes(first), http_filters }),
        httpListener('scoped', 0, { scoped_routes, http_filters }),
      ],
      clusters: [host],
    });
  };
  const [one, two] = [{ cors: allowing(PAGES[0]!) }, corsPolicy(allowing(PAGES[1]!))];
  const baton = await startBaton(t, { config: config(one, two), args: ['-l', 'warning', '--concurrency', '2'] });
  const [main, scoped] = [await baton.listenerPort('main'), await baton.listenerPort('scoped')];
  t.same(await allowedBy(main!), [PAGES[0]]);
  t.same(await allowedBy(scoped!, { 'x-scope': 'one' }), [PAGES[0]]);
  t.same(await allowedBy(scoped!, { 'x-scope': 'two' }), [PAGES[1]]);

  writeFileSync(baton.configPath, JSON.stringify(config(two, one)));
  const { body } = await baton.admin('/config/reload?format=json&apply=true', { method: 'POST', deadlineMs: 60_000 });
  t.match(JSON.parse(body), { outcome: 'applied' });
  await waitForPages(main!, [PAGES[1]!]);
  await waitFor(async () => (await allowedBy(scoped!, { 'x-scope': 'one' })).join() === PAGES[1], { what: 'one' });
  await waitFor(async () => (await allowedBy(scoped!, { 'x-scope': 'two' })).join() === PAGES[0], { what: 'two' });
});

t.test('an on-demand virtual host brings its policy', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('virtual-host', [
    { ...virtualHost({ cors: allowing(PAGES[0]!) }), name: 'routes/one.com', domains: ['one.com'] },
    { ...virtualHost(corsPolicy(allowing(PAGES[1]!))), name: 'routes/two.com', domains: ['two.com'] },
  ]);
  plane.set('route', [{ name: 'routes', vhds: { config_source: plane.source('delta') } }]);
  const rds = { route_config_name: 'routes', config_source: plane.source('delta') };
  const onDemand = { name: 'on_demand', typed_config: { '@type': `${FILTERS}.on_demand.v3.OnDemand` } };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, { rds, http_filters: [onDemand, CORS_FILTER, ROUTER_FILTER] })],
      clusters: [host, plane.cluster()],
    }),
  });
  const port = await baton.listenerPort('main');
  t.same(await allowedBy(port, { host: 'one.com' }), [PAGES[0]]);
  t.same(await allowedBy(port, { host: 'two.com' }), [PAGES[1]]);
  await waitForCounts(baton, 'main', 2);
});

/** Waits until one page was allowed, and the other one not, this many times. */
function waitForCounts(baton: BatonProcess, listener: string, times: number): Promise<unknown> {
  const prefix = `http.${listener}.cors.origin`;
  return baton.waitForStats({ [`${prefix}_valid`]: times, [`${prefix}_invalid`]: times });
}
