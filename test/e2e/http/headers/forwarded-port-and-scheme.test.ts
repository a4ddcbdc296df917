// append_x_forwarded_port and scheme_header_transformation. The expected values are those of Envoy 1.40.

import { join } from 'node:path';
import t from 'tap';
import { type Config, fileAccessLog, logLines, staticCluster, tempDir, waitFor } from '../../harness/index.js';
import { headerOption, routeConfig, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const upstream = await startRawUpstream(t, ({ socket }) => socket.write(response(200, 'ok')));
const logFile = join(tempDir(t), 'log');
const log = fileAccessLog(logFile, '%REQ(:PATH)% %REQ(:SCHEME)% %RESPONSE_CODE%\n');
const manager = (more: Config, host: Config = {}): Config => ({
  route_config: routeConfig([
    {
      name: 'all',
      domains: ['*'],
      routes: [
        { match: { path: '/local' }, direct_response: { status: 200 } },
        {
          ...routeTo({ prefix: '/' }, 'host'),
          request_headers_to_add: [headerOption('x-scheme', '%REQ(:SCHEME)%')],
        },
      ],
      ...host,
    },
  ]),
  access_log: [log],
  ...more,
});
const port = { append_x_forwarded_port: true };
const scheme = (scheme_header_transformation: Config) => ({ scheme_header_transformation });
const proxy = await startProxy(t, {
  listeners: {
    inside: manager(port),
    edge: manager({ ...port, use_remote_address: true }),
    behind: manager({ ...port, use_remote_address: true, xff_num_trusted_hops: 1 }),
    https: manager(scheme({ scheme_to_overwrite: 'https' }), { require_tls: 'ALL' }),
    http: manager({ ...scheme({ scheme_to_overwrite: 'http' }), use_remote_address: true }),
    match: manager(scheme({ match_upstream: true })),
  },
  clusters: [staticCluster('host', upstream.port)],
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
});

/** Sends a request. Returns the value of a field that the host receives; undefined without it. */
async function forwarded(listener: string, name: string, headers: Record<string, string> = {}, path = '/') {
  t.equal((await proxy.on(listener, path, { headers })).status, 200, listener);
  return new RegExp(`^${name}: (.*)$`, 'im').exec(upstream.requests.at(-1)!.head)?.[1];
}
const FORWARDED = { 'x-forwarded-for': '1.2.3.4', 'x-forwarded-port': '77', 'x-forwarded-proto': 'https' };

t.test('x-forwarded-port is the port of the listener', async (t) => {
  for (const listener of ['inside', 'edge', 'behind'])
    t.equal(await forwarded(listener, 'x-forwarded-port'), String(proxy.ports[listener]), listener);
});

t.test('x-forwarded-port of a trusted proxy is kept, that of a client at the edge is replaced', async (t) => {
  t.equal(await forwarded('inside', 'x-forwarded-port', FORWARDED), '77');
  t.equal(await forwarded('behind', 'x-forwarded-port', FORWARDED), '77');
  t.equal(await forwarded('edge', 'x-forwarded-port', FORWARDED), String(proxy.ports['edge']));
});

t.test('scheme_to_overwrite replaces the scheme and x-forwarded-proto, before routes are matched', async (t) => {
  // The virtual host requires TLS.
  t.equal(await forwarded('https', 'x-forwarded-proto'), 'https');
  t.equal(await forwarded('https', 'x-scheme', { 'x-forwarded-proto': 'http' }), 'https');
  for (const headers of [{}, FORWARDED]) {
    t.equal(await forwarded('http', 'x-forwarded-proto', headers), 'http');
    t.equal(await forwarded('http', 'x-scheme', headers), 'http');
  }
});

t.test('match_upstream gives a request the scheme of its host when it is forwarded', async (t) => {
  const logged = (path: string) => waitFor(() => logLines(logFile).find((line) => line.startsWith(`${path} `)));
  t.equal(await forwarded('match', 'x-scheme', FORWARDED, '/matched'), 'https', 'while its headers are changed');
  t.match(upstream.requests.at(-1)!.head, /^x-forwarded-proto: https$/im);
  t.equal(await logged('/matched'), '/matched http 200');
  await proxy.on('match', '/local', { headers: FORWARDED });
  t.equal(await logged('/local'), '/local https 200', 'but not without a host');
});
