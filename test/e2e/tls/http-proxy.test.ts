// http_11_proxy: connections to hosts pass through an HTTP proxy, and proxies that refuse or abuse CONNECT end only these connections. The
// expected results are those of Envoy 1.40.

import { createServer as createHttps } from 'node:https';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  loopback,
  routeAllTo,
  startBaton,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { logLines } from '../harness/log-lines.js';
import { openStream } from '../tcp/stream.js';

const TYPE = 'type.googleapis.com/envoy.extensions.transport_sockets';
const TLS = { name: 'tls', typed_config: { '@type': `${TYPE}.tls.v3.UpstreamTlsContext`, sni: 'host.test' } };
const RAW = { name: 'raw', typed_config: { '@type': `${TYPE}.raw_buffer.v3.RawBuffer` } };
const ACCEPTED = 'HTTP/1.1 200 OK\r\n\r\n';

const root = await Authority.create();
const { certificate, key } = await root.issue({ names: ['host.test'] });
let requests = 0;
const origin = createHttps({ key, cert: certificate }, (_request, response) => {
  requests++;
  response.end('origin');
});
await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
t.teardown(() => {
  origin.closeAllConnections();
  origin.close();
});
const originPort = (origin.address() as { port: number }).port;

interface Proxy {
  readonly port: number;
  /** Heads of requests. */
  readonly heads: string[];
}

/** A proxy that sends `answer` to CONNECT, and connects to the port of the target if that begins with 200; undefined: it ends the connection. */
async function startHttpProxy(t: Teardown, answer: string | undefined): Promise<Proxy> {
  const heads: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    let received = '';
    sockets.push(socket);
    socket.on('error', () => {});
    const onData = (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (!received.includes('\r\n\r\n')) return;
      socket.off('data', onData);
      heads.push(received);
      if (answer === undefined) return void socket.end();
      socket.write(answer, 'latin1');
      if (!answer.startsWith('HTTP/1.1 200')) return;
      const target = connect(Number(/:(\d+) /.exec(received)![1]), '127.0.0.1');
      sockets.push(target);
      target.on('error', () => {});
      socket.pipe(target).pipe(socket);
    };
    socket.on('data', onData);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return { port: (server.address() as { port: number }).port, heads };
}

/** A cluster whose host is reached through the proxy that its metadata names. */
function proxied(port: number, proxy: number | undefined, inner: Config, more: Config = {}): Config {
  const key = 'envoy.http11_proxy_transport_socket.proxy_address';
  const address = { '@type': 'type.googleapis.com/envoy.config.core.v3.Address', ...loopback(proxy ?? 0) };
  const endpoint = {
    endpoint: { address: loopback(port), hostname: 'host.test' },
    ...(proxy === undefined ? {} : { metadata: { typed_filter_metadata: { [key]: address } } }),
  };
  return staticCluster('host', [], {
    connect_timeout: '1s',
    load_assignment: { cluster_name: 'host', endpoints: [{ lb_endpoints: [endpoint] }] },
    transport_socket: {
      name: 'proxy',
      typed_config: {
        '@type': `${TYPE}.http_11_proxy.v3.Http11ProxyUpstreamTransport`,
        transport_socket: inner,
        ...more,
      },
    },
  });
}

async function start(t: Teardown, program: ProxyProgram, cluster: Config): Promise<[BatonProcess, string]> {
  const log = join(tempDir(t), 'log');
  const format = '%RESPONSE_CODE% %RESPONSE_FLAGS% %UPSTREAM_HOST% %UPSTREAM_REMOTE_ADDRESS%\n';
  const listeners = [
    httpListener('http', 0, { route_config: routeAllTo('host'), access_log: [fileAccessLog(log, format)] }),
    tcpListener('tcp', 0, { cluster: 'host' }),
  ];
  const config = bootstrap({ listeners, clusters: [cluster] });
  return [await startBaton(t, { ...program, config, args: ['--file-flush-interval-msec', '50'] }), log];
}

besideEnvoy('a host with a proxy in its metadata is reached by CONNECT, with TLS inside', async (t, program) => {
  const proxy = await startHttpProxy(t, 'HTTP/1.1 200 Connection established\r\nvia: a\r\n\r\n');
  const [baton, log] = await start(t, program, proxied(originPort, proxy.port, TLS));
  t.match(await httpRequest(await baton.listenerPort('http'), '/'), { status: 200, body: 'origin' });
  const target = `host.test:${originPort}`;
  t.same(proxy.heads, [`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`]);
  const [line] = await waitFor(() => logLines(log).length > 0 && logLines(log), { what: 'a log line' });
  t.equal(line, `200 - 127.0.0.1:${originPort} 127.0.0.1:${proxy.port}`);
  t.equal(await baton.stat('cluster.host.ssl.handshake'), 1);
});

for (const [what, answer] of [
  ['refuses', 'HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno'],
  ['answers with another success', 'HTTP/1.1 201 Created\r\n\r\n'],
  ['sends an informational response first', `HTTP/1.1 100 Continue\r\n\r\n${ACCEPTED}`],
  ['sends no HTTP', 'SSH-2.0-x\r\n\r\n'],
  ['ends the connection', undefined],
  ['sends nothing', ''],
] as const) {
  besideEnvoy(`a proxy that ${what} fails the connect`, async (t, program) => {
    const before = requests;
    const proxy = await startHttpProxy(t, answer);
    const [baton] = await start(t, program, proxied(originPort, proxy.port, TLS));
    t.equal((await httpRequest(await baton.listenerPort('http'), '/')).status, 503);
    t.equal(await baton.stat('cluster.host.upstream_cx_connect_fail'), 1);
    t.equal(requests, before);
  });
}

t.test('bytes behind the answer that are not of the host end the connection', async (t) => {
  const proxy = await startHttpProxy(t, `${ACCEPTED}surplus`);
  const [baton] = await start(t, { command: undefined }, proxied(originPort, proxy.port, TLS));
  t.equal((await httpRequest(await baton.listenerPort('http'), '/')).status, 503);
  t.equal(await baton.stat('cluster.host.upstream_cx_connect_fail'), 1);
});

besideEnvoy('plain bytes pass too, also when the host speaks first', async (t, program) => {
  const greeter = createServer((socket) => void socket.on('error', () => {}).end('220 hello\r\n'));
  await new Promise<void>((resolve) => greeter.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void greeter.close());
  const proxy = await startHttpProxy(t, ACCEPTED);
  const [baton] = await start(t, program, proxied((greeter.address() as { port: number }).port, proxy.port, RAW));
  const client = await openStream(t, await baton.listenerPort('tcp'));
  await client.isClosed();
  t.equal(client.head, '220 hello\r\n');
});

t.test('the greeting of a host may come with the answer', async (t) => {
  const proxy = await startHttpProxy(t, `${ACCEPTED}220 hello\r\n`);
  const [baton] = await start(t, { command: undefined }, proxied(originPort, proxy.port, RAW));
  const client = await openStream(t, await baton.listenerPort('tcp'));
  await client.receives(11);
  t.equal(client.head, '220 hello\r\n');
});

besideEnvoy('other hosts go through the default proxy, or are connected to directly', async (t, program) => {
  const proxy = await startHttpProxy(t, ACCEPTED);
  const [through] = await start(
    t,
    program,
    proxied(originPort, undefined, TLS, { default_proxy_address: loopback(proxy.port) }),
  );
  t.match(await httpRequest(await through.listenerPort('http'), '/'), { status: 200, body: 'origin' });
  t.equal(proxy.heads.length, 1);
  const [direct] = await start(t, program, proxied(originPort, undefined, TLS));
  t.match(await httpRequest(await direct.listenerPort('http'), '/'), { status: 200, body: 'origin' });
  t.equal(proxy.heads.length, 1);
});
