// Configured text that becomes part of a header section is sent as UTF-8, and cannot break a line, whatever its characters.

import t from 'tap';
import { type EchoedRequest, loopback, rawExchange, startEchoUpstream } from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

/** The low bytes of its second and third characters are CR and LF. */
const TEXT = 'ü\u010d\u010ax-more: 1';
const HTTP = 'type.googleapis.com/envoy.extensions.filters.http';
const echo = await startEchoUpstream(t);
const { port } = await startProxy(t, {
  listeners: {
    main: managerOf([routeTo({ prefix: '/' }, 'echo', { auto_host_rewrite: true })], {
      via: TEXT,
      http_filters: [
        {
          name: 'health',
          typed_config: {
            '@type': `${HTTP}.health_check.v3.HealthCheck`,
            pass_through_mode: false,
            headers: [{ name: ':path', string_match: { exact: '/healthz' } }],
          },
        },
        { name: 'router', typed_config: { '@type': `${HTTP}.router.v3.Router` } },
      ],
    }),
  },
  clusters: [
    {
      name: 'echo',
      type: 'STRICT_DNS',
      load_assignment: {
        cluster_name: 'echo',
        endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(echo.port), hostname: TEXT } }] }],
      },
    },
  ],
  args: ['-l', 'warning', '--service-cluster', TEXT],
});

t.test('via and host rewrites are sent as UTF-8', async (t) => {
  const { text } = await rawExchange(port, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  const { headers, rest } = parseMessage(text);
  t.equal(utf8(headers['via']), TEXT);
  t.equal(headers['x-more'], undefined);
  const received = (JSON.parse(utf8(rest.slice(rest.indexOf('{'), rest.lastIndexOf('}') + 1))) as EchoedRequest)
    .headers;
  t.equal(utf8(received['via']), TEXT);
  t.equal(utf8(received['host']), TEXT);
  t.equal(received['x-more'], undefined);
});

t.test('the service name of health checks is sent as UTF-8', async (t) => {
  const { text } = await rawExchange(port, 'GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  const { headers } = parseMessage(text);
  t.equal(utf8(headers['x-envoy-upstream-healthchecked-cluster']), TEXT);
  t.equal(headers['x-more'], undefined);
});

function utf8(latin1: string | string[] | undefined): string {
  return Buffer.from(String(latin1), 'latin1').toString();
}
