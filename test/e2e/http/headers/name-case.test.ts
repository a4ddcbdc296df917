// header_key_format, on both sides. The expected names are those that Envoy 1.40 sends.

import t from 'tap';
import { type Config, clusterHttpOptions, rawExchange, staticCluster } from '../../harness/index.js';
import { headerOption, managerOf, routeTo, startProxy } from '../proxy.js';
import { startRawUpstream } from '../raw-upstream.js';

const upstream = await startRawUpstream(t, ({ path, socket }) => {
  if (path === '/switch')
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhi');
  else if (path === '/chunked')
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-aB-c: 2\r\n\r\n');
  else
    socket.write(
      'HTTP/1.1 200 Fine Day\r\nContent-length: 2\r\nX-fOO: 1\r\nx_under-SCORE: 3\r\nETag: "a"\r\nx!dav#a: 4\r\n\r\nok',
    );
});
const PROPER = { header_key_format: { proper_case_words: {} } };
const formatter = (fields: Config) => ({
  header_key_format: {
    stateful_formatter: {
      name: 'preserve_case',
      typed_config: {
        '@type':
          'type.googleapis.com/envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig',
        ...fields,
      },
    },
  },
});
const FORMATS: Record<string, Config> = {
  proper: PROPER,
  kept: formatter({ forward_reason_phrase: true }),
  added: formatter({ formatter_type_on_envoy_headers: 'PROPER_CASE' }),
};
const proxy = await startProxy(t, {
  listeners: Object.fromEntries(
    Object.entries(FORMATS).map(([name, format]) => [
      name,
      managerOf(
        [
          { match: { path: '/local' }, direct_response: { status: 200, body: { inline_string: 'x' } } },
          { ...routeTo({ prefix: '/' }, name), request_headers_to_add: [headerOption('x-added', '1')] },
        ],
        {
          http_protocol_options: { ...format, enable_trailers: true },
          upgrade_configs: [{ upgrade_type: 'websocket' }],
        },
      ),
    ]),
  ),
  clusters: Object.entries(FORMATS).map(([name, format]) =>
    staticCluster(
      name,
      upstream.port,
      clusterHttpOptions({ explicit_http_config: { http_protocol_options: { ...format, enable_trailers: true } } }),
    ),
  ),
});

/** Returns the names that the client and the host received, and the client's text. */
async function exchange(listener: string, request: string, until = /ok$/) {
  const { length } = upstream.requests;
  const { text } = await rawExchange(proxy.ports[listener]!, request, { until });
  return { text, client: namesOf(text), host: namesOf(upstream.requests[length]?.head ?? '') };
}

function namesOf(head: string): string {
  const [fields = ''] = head.split('\r\n\r\n');
  const names = fields.split('\r\n').slice(1);
  return names.map((line) => line.slice(0, line.indexOf(':'))).join(' ');
}

const FIELDS = 'host: a\r\nX-fOO: 1\r\nx_under-SCORE: 3\r\nx!dav#a: 4\r\n9x-a9B: 5\r\n';

t.test('proper_case_words writes every name in proper case', async (t) => {
  const { client, host } = await exchange('proper', `GET / HTTP/1.1\r\n${FIELDS}\r\n`);
  t.match(host, /^Host X-Foo X_Under-Score X!Dav#A 9x-A9b X-Forwarded-Proto X-Request-Id /);
  t.match(host, / X-Added$/);
  t.match(client, /^Content-Length X-Foo X_Under-Score Etag X!Dav#A X-Envoy-Upstream-Service-Time /);
  t.match(client, / Server Date$/);
});

t.test('proper_case_words also writes the names of framing, upgrades and local replies', async (t) => {
  const local = await exchange('proper', `GET /local HTTP/1.1\r\n${FIELDS}Connection: close\r\n\r\n`, /x$/);
  t.equal(local.client, 'Content-Length Content-Type Server Date Connection');
  const invalid = await exchange('proper', 'GET / HTTP/1.1\r\nx\r\n\r\n', /Request$/);
  t.match(invalid.client, /^Content-Length Content-Type .*Connection$/);
  const post = await exchange('proper', `POST / HTTP/1.1\r\n${FIELDS}\r\n`);
  t.match(post.host, / Content-Length$/);
  const chunked = await exchange(
    'proper',
    `POST /chunked HTTP/1.1\r\n${FIELDS}te: trailers\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`,
    /\r\n0\r\n(.+\r\n)?\r\n/,
  );
  t.match(chunked.host, /Transfer-Encoding/);
  t.match(chunked.client, /Transfer-Encoding/);
  // Envoy does not change the names of trailers either, except for their case.
  t.match(chunked.text, /\r\n0\r\nx-aB-c: 2\r\n\r\n$/);
  const tunnel = await exchange(
    'proper',
    `GET /switch HTTP/1.1\r\n${FIELDS}connection: upgrade\r\nupgrade: websocket\r\n\r\n`,
    /hi$/,
  );
  t.match(tunnel.client, /Upgrade/);
  t.match(tunnel.client, /Connection/);
  t.match(tunnel.host, /Upgrade.*Connection/);
});

t.test('preserve_case keeps names as received', async (t) => {
  const { client, host, text } = await exchange('kept', `GET / HTTP/1.1\r\n${FIELDS}\r\n`);
  t.match(host, /^host X-fOO x_under-SCORE x!dav#a 9x-a9B x-forwarded-proto x-request-id /);
  t.match(client, /^Content-length X-fOO x_under-SCORE ETag x!dav#a x-envoy-upstream-service-time /);
  t.ok(text.startsWith('HTTP/1.1 200 Fine Day\r\n'));
});

t.test('formatter_type_on_envoy_headers writes only added names in proper case', async (t) => {
  const { client, host } = await exchange('added', `GET / HTTP/1.1\r\n${FIELDS}\r\n`);
  t.match(host, /^host X-fOO x_under-SCORE x!dav#a 9x-a9B X-Forwarded-Proto X-Request-Id /);
  t.match(host, / X-Added$/);
  t.match(client, /^Content-length X-fOO x_under-SCORE ETag x!dav#a X-Envoy-Upstream-Service-Time /);
  // As in Envoy, those of a local reply stay.
  const local = await exchange('added', `GET /local HTTP/1.1\r\n${FIELDS}\r\n`, /x$/);
  t.equal(local.client, 'content-length content-type server date');
});
