// bandwidth_limit: bodies pass no faster than the limit, which requests and responses share, and what waits is bounded. The expected
// results are those of Envoy 1.40.

import { createServer, get as httpGet, request as httpRequest } from 'node:http';
import { createServer as createHttp2 } from 'node:http2';
import { connect } from 'node:net';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type Config,
  HTTP2_CLUSTER,
  staticCluster,
  type Teardown,
  TRAILERS,
  TRAILERS_CLUSTER,
  waitFor,
} from '../../harness/index.js';
import { type HttpProxy, startProxy } from '../proxy.js';

const MESSAGE = 'envoy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit';
const NAME = 'envoy.filters.http.bandwidth_limit';
const KIB = 1024;

function limit(config: Config): Config {
  return { '@type': `type.googleapis.com/${MESSAGE}`, stat_prefix: 'bw', ...config };
}

interface Host {
  readonly port: number;
  /** Bytes that the host has written so far, and received. */
  sent: number;
  received: number;
}

/** Answers with as many bytes as the path says: `/10240`. */
async function startHost(t: Teardown): Promise<Host> {
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => {
      host.received += chunk.length;
    });
    request.on('end', () => {
      let left = Number(request.url!.split('/').at(-1));
      const write = () => {
        while (left > 0) {
          const length = Math.min(left, 16 * KIB);
          left -= length;
          host.sent += length;
          if (!response.write(Buffer.alloc(length, 'a'))) {
            response.once('drain', write);
            return;
          }
        }
        response.end();
      };
      write();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const host: Host = { port: (server.address() as { port: number }).port, sent: 0, received: 0 };
  return host;
}

/** The same over HTTP/2. */
async function startHttp2Host(t: Teardown): Promise<number> {
  const server = createHttp2();
  server.on('session', (session) => {
    session.on('error', () => {});
    t.teardown(() => session.destroy());
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    stream.respond({ ':status': 200 });
    stream.end(Buffer.alloc(Number(headers[':path']!.split('/').at(-1)), 'a'));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return (server.address() as { port: number }).port;
}

async function startLimited(
  t: Teardown,
  program: ProxyProgram,
  host: Host,
  config: Config,
  routes: Config[] = [],
  extra: Config = {},
  cluster: Config = TRAILERS_CLUSTER,
): Promise<HttpProxy> {
  const all = { match: { prefix: '/' }, route: { cluster: 'host', timeout: '60s' } };
  return startProxy(t, {
    ...program,
    listeners: {
      limited: {
        ...TRAILERS,
        http_filters: [
          { name: NAME, typed_config: limit(config) },
          {
            name: 'router',
            typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
          },
        ],
        route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [...routes, all] }] },
      },
    },
    clusters: [staticCluster('host', host.port, cluster)],
    extra,
  });
}

interface Transfer {
  readonly bytes: number;
  readonly ms: number;
  readonly trailers: NodeJS.Dict<string>;
}

/** Sends `body` bytes, and measures until the response is complete. */
function transfer(port: number, path: string, body = 0): Promise<Transfer> {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const request = httpRequest({ port, path, method: body > 0 ? 'POST' : 'GET' }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('end', () => resolve({ bytes, ms: performance.now() - begin, trailers: response.trailers }));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end(Buffer.alloc(body));
  });
}

besideEnvoy('requests and responses share one limit, and trailers report the delays', async (t, program) => {
  const host = await startHost(t);
  const { baton, port } = await startLimited(t, program, host, {
    enable_mode: 'REQUEST_AND_RESPONSE',
    limit_kbps: '20',
    enable_response_trailers: true,
    response_trailer_prefix: 'x',
  });
  const { bytes, ms, trailers } = await transfer(port, `/${10 * KIB}`, 10 * KIB);
  t.equal(bytes, 10 * KIB);
  t.equal(host.received, 10 * KIB);
  t.ok(ms > 850, `20 KiB at 20 KiB/s in ${ms} ms`);
  const names = ['request-delay-ms', 'request-filter-delay-ms', 'response-delay-ms', 'response-filter-delay-ms'];
  t.same(
    Object.keys(trailers).sort(),
    names.map((name) => `x-bandwidth-${name}`),
  );
  for (const value of Object.values(trailers)) t.ok(Number(value) > 0, `${value} ms`);
  await baton.waitForStats({
    'bw.http_bandwidth_limit.request_enabled': 1,
    'bw.http_bandwidth_limit.response_enabled': 1,
    'bw.http_bandwidth_limit.request_incoming_total_size': 10 * KIB,
    'bw.http_bandwidth_limit.request_allowed_total_size': 10 * KIB,
    'bw.http_bandwidth_limit.response_incoming_total_size': 10 * KIB,
    'bw.http_bandwidth_limit.response_allowed_total_size': 10 * KIB,
    'bw.http_bandwidth_limit.request_pending': 0,
    'bw.http_bandwidth_limit.response_pending': 0,
  });
  t.ok((await baton.stat('bw.http_bandwidth_limit.response_enforced'))! > 4);
});

besideEnvoy('concurrent messages share the limit', async (t, program) => {
  const host = await startHost(t);
  const { port } = await startLimited(t, program, host, { enable_mode: 'RESPONSE', limit_kbps: '40' });
  const all = await Promise.all([1, 2, 3, 4].map(() => transfer(port, `/${10 * KIB}`)));
  for (const { bytes } of all) t.equal(bytes, 10 * KIB);
  t.ok(Math.max(...all.map(({ ms }) => ms)) > 850, 'four responses of 10 KiB take a second at 40 KiB/s');
});

besideEnvoy('only the enabled direction is limited, and routes have their own limit', async (t, program) => {
  const host = await startHost(t);
  const routes = [
    {
      match: { prefix: '/off' },
      route: { cluster: 'host' },
      typed_per_filter_config: { [NAME]: limit({ enable_mode: 'DISABLED', limit_kbps: '1' }) },
    },
    {
      match: { prefix: '/own' },
      route: { cluster: 'host' },
      typed_per_filter_config: { [NAME]: limit({ stat_prefix: 'own', enable_mode: 'RESPONSE', limit_kbps: '10000' }) },
    },
  ];
  const { baton, port } = await startLimited(t, program, host, { enable_mode: 'REQUEST', limit_kbps: '1' }, routes);
  t.equal((await transfer(port, `/${100 * KIB}`)).bytes, 100 * KIB);
  t.equal((await transfer(port, `/off/${100 * KIB}`, 100 * KIB)).bytes, 100 * KIB);
  t.equal((await transfer(port, `/own/${100 * KIB}`, 100 * KIB)).bytes, 100 * KIB);
  await baton.waitForStats({
    'bw.http_bandwidth_limit.request_enabled': 1,
    'bw.http_bandwidth_limit.response_enabled': 0,
    'own.http_bandwidth_limit.response_enabled': 1,
    'own.http_bandwidth_limit.response_allowed_total_size': 100 * KIB,
  });
});

besideEnvoy('runtime turns the filter off', async (t, program) => {
  const host = await startHost(t);
  const runtime = { layers: [{ name: 'static', static_layer: { 'bw.on': false } }] };
  const { baton, port } = await startLimited(
    t,
    program,
    host,
    {
      enable_mode: 'REQUEST_AND_RESPONSE',
      limit_kbps: '1',
      runtime_enabled: { default_value: true, runtime_key: 'bw.on' },
    },
    [],
    { layered_runtime: runtime },
  );
  t.equal((await transfer(port, `/${100 * KIB}`, 100 * KIB)).bytes, 100 * KIB);
  t.equal(await baton.stat('bw.http_bandwidth_limit.request_enabled'), 0);
});

for (const [protocol, cluster] of [
  ['HTTP/1.1', TRAILERS_CLUSTER],
  ['HTTP/2', HTTP2_CLUSTER],
] as const) {
  besideEnvoy(`bodies of any size of ${protocol} hosts arrive whole`, async (t, program) => {
    const port = protocol === 'HTTP/2' ? await startHttp2Host(t) : (await startHost(t)).port;
    const config = { enable_mode: 'RESPONSE', limit_kbps: '4096' };
    const { port: listener } = await startLimited(t, program, { port, sent: 0, received: 0 }, config, [], {}, cluster);
    // Ends arrive while earlier bytes wait, and together with them.
    for (let kib = 40; kib <= 640; kib += 40) {
      const { bytes } = await transfer(listener, `/${kib * KIB}`);
      t.equal(bytes, kib * KIB, `${kib} KiB`);
    }
  });
}

besideEnvoy('a host is not read faster than the limit', async (t, program) => {
  const host = await startHost(t);
  const { baton, port } = await startLimited(t, program, host, { enable_mode: 'RESPONSE', limit_kbps: '10' });
  const request = httpGet({ port, path: `/${256 * 1024 * KIB}` }, (response) => response.resume());
  request.on('error', () => {});
  let before = -1;
  let unchanged = 0;
  await waitFor(
    () => {
      unchanged = host.sent > 0 && host.sent === before ? unchanged + 1 : 0;
      before = host.sent;
      return unchanged === 40;
    },
    { what: 'the end of sending' },
  );
  t.ok(host.sent < 64 * 1024 * KIB, `the host has sent ${host.sent} bytes`);
  t.equal(await baton.stat('bw.http_bandwidth_limit.response_pending'), 1);
  request.destroy();
  if (program.command === undefined) await baton.waitForStats({ 'bw.http_bandwidth_limit.response_pending': 0 });
});

t.test('a client that does not read stops the response behind the filter', async (t) => {
  const host = await startHost(t);
  const { port } = await startLimited(t, { command: undefined }, host, {
    enable_mode: 'RESPONSE',
    limit_kbps: '10000000',
  });
  const client = connect(port, '127.0.0.1');
  t.teardown(() => client.destroy());
  client.pause();
  client.write(`GET /${256 * 1024 * KIB} HTTP/1.1\r\nhost: a\r\n\r\n`);
  let before = -1;
  let unchanged = 0;
  await waitFor(
    () => {
      unchanged = host.sent > 0 && host.sent === before ? unchanged + 1 : 0;
      before = host.sent;
      return unchanged === 40;
    },
    { what: 'the end of sending' },
  );
  t.ok(host.sent < 64 * 1024 * KIB, `the host has sent ${host.sent} bytes`);
});
