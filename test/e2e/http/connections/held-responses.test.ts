// Responses that end before their requests while a filter holds them: the connection to the host serves other requests meanwhile, which
// must not get anything of these.

import type { ServerResponse } from 'node:http';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  waitFor,
} from '../../harness/index.js';

const HTTP = 'type.googleapis.com/envoy.extensions.filters.http';
const OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const CODEC = {
  name: 'envoy.filters.http.upstream_codec',
  typed_config: { '@type': `${HTTP}.upstream_codec.v3.UpstreamCodec` },
};
/** Holds a response with x-hold until the gate answers. */
const HOLDS = {
  name: 'lua',
  typed_config: {
    '@type': `${HTTP}.lua.v3.Lua`,
    default_source_code: {
      inline_string: `function envoy_on_response(handle)
        if handle:headers():get("x-hold") == nil then return end
        handle:httpCall("gate", {[":method"] = "GET", [":path"] = "/", [":authority"] = "gate"}, nil, 20000)
      end`,
    },
  },
};

interface Host {
  readonly port: number;
  /** What has arrived of the bodies of requests for /other. */
  readonly body: () => string;
}

/** Starts a host that answers /early before the request is complete, and other requests with their body. */
async function startHttp2Host(t: Teardown): Promise<Host> {
  let received = '';
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => {});
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    if (headers[':path'] === '/early') return stream.respond({ ':status': 413, 'x-hold': 'yes' }, { endStream: true });
    received = '';
    stream.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    stream.on('end', () => {
      stream.respond({ ':status': 200 });
      stream.end(received);
    });
  });
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, body: () => received };
}

/** Starts a host that refuses upgrades. */
async function startHttp1Host(t: Teardown): Promise<Host & { readonly accepted: () => number }> {
  let received = '';
  const { accepted, port } = await startUpstream(t, (request, response) => {
    if (request.url === '/early') return void response.writeHead(403, { 'x-hold': 'yes' }).end('no');
    received = '';
    request.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    request.on('end', () => response.end(received));
  });
  return { accepted, port, body: () => received };
}

interface Place {
  readonly listener?: Config[];
  readonly cluster?: Config[];
}

/** Starts a proxy in front of the host. `gates`: the calls of the filters, which end when the test answers them. */
async function start(t: Test, port: number, protocol: Config, { listener = [], cluster }: Place) {
  const gates: ServerResponse[] = [];
  const gate = await startUpstream(t, (_, response) => void gates.push(response));
  const options = {
    '@type': `type.googleapis.com/${OPTIONS}`,
    explicit_http_config: protocol,
    ...(cluster && { http_filters: [...cluster, CODEC] }),
  };
  const baton = await startBaton(t, {
    args: ['--concurrency', '1'],
    config: bootstrap({
      listeners: [
        httpListener('in', 0, {
          stat_prefix: 'in',
          upgrade_configs: [{ upgrade_type: 'websocket' }],
          route_config: {
            virtual_hosts: [
              { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'host' } }] },
            ],
          },
          http_filters: [...listener, ROUTER_FILTER],
        }),
      ],
      clusters: [
        { ...staticCluster('host', port), typed_extension_protocol_options: { [OPTIONS]: options } },
        staticCluster('gate', gate.port),
      ],
    }),
  });
  return { baton, gates, port: await baton.listenerPort('in') };
}

const PLACES: Readonly<Record<string, Place>> = {
  'a filter of the listener': { listener: [HOLDS] },
  'an upstream filter': { cluster: [HOLDS] },
};
const EARLY = {
  upload: 'POST /early HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\nearly',
  upgrade: 'GET /early HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
};

/** Sends a request whose response is held, and another one to the same host, before the first client sends more or disconnects. */
async function checkOther(
  t: Test,
  host: Host,
  { baton, gates, port }: Awaited<ReturnType<typeof start>>,
  head: string,
) {
  for (const leaves of [false, true]) {
    const early = await connectRaw(t, port);
    early.write(head);
    const gate = await waitFor(() => gates.shift(), { what: 'the call of the filter' });
    const other = await connectRaw(t, port);
    other.write('POST /other HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nfirst');
    await waitFor(() => host.body() === 'first', { what: 'the first part' });
    const RECEIVED = 'http.in.downstream_cx_rx_bytes_total';
    const before = (await baton.stat(RECEIVED)) ?? 0;
    if (leaves) early.destroy();
    else early.write('wrong');
    if (leaves) await baton.waitForStats({ 'http.in.downstream_cx_active': 1 });
    else await baton.waitForStats({ [RECEIVED]: before + 5 });
    other.write('-last');
    t.match(await other.readUntil('first-last'), /^HTTP\/1\.1 200 /);
    gate.end();
    if (!leaves) t.match(await early.readUntil('\r\n\r\n'), /^HTTP\/1\.1 4/);
    early.destroy();
    other.destroy();
    await baton.waitForStats({ 'http.in.downstream_cx_active': 0, 'cluster.host.upstream_rq_active': 0 });
  }
}

for (const [what, place] of Object.entries(PLACES)) {
  t.test(`HTTP/2: what follows an answered request reaches no other one while ${what} holds the answer`, async (t) => {
    const host = await startHttp2Host(t);
    const proxy = await start(t, host.port, { http2_protocol_options: {} }, place);
    await checkOther(t, host, proxy, EARLY.upload);
  });

  t.test(
    `HTTP/1: what follows a refused upgrade reaches no other request while ${what} holds the answer`,
    async (t) => {
      const host = await startHttp1Host(t);
      const proxy = await start(t, host.port, { http_protocol_options: {} }, place);
      await checkOther(t, host, proxy, EARLY.upgrade);
      t.equal(host.accepted(), 1, 'the requests share a connection');
    },
  );
}
