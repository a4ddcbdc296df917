// A call whose header section cannot be written closes the client's connection, and the connection to the host stays reusable.

import t from 'tap';
import { ROUTER_FILTER, startUpstream, staticCluster, UNBUNDLED, waitForLog } from '../../harness/index.js';
import { answering, managerOf, startProxy } from '../proxy.js';

const service = await startUpstream(t, (_request, answer) => void answer.end('of the service'));
const { baton, get } = await startProxy(t, {
  program: UNBUNDLED,
  nodeArgs: ['--import', new URL('./calling-filter.js', import.meta.url).href],
  listeners: {
    main: managerOf([answering({ prefix: '/' }, 'here')], {
      http_filters: [
        {
          name: 'calling',
          typed_config: {
            '@type':
              'type.googleapis.com/envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigningPerRoute',
            stat_prefix: 'a',
          },
        },
        ROUTER_FILTER,
      ],
    }),
  },
  clusters: [
    staticCluster('service', service.port, {
      circuit_breakers: { thresholds: [{ max_connections: 1, max_pending_requests: 1 }] },
    }),
  ],
});

for (const [mistake, message] of [
  ['throw', 'TypeError: a mistake in writeHead()'],
  ['nothing', 'Error: writeHead() of a call has set no method or no path'],
] as const) {
  t.test(message, async (t) => {
    t.match(await get('/'), { status: 200, body: 'of the service' }, 'opens the connection');
    t.match(await get('/', { headers: { 'x-mistake': mistake } }), { status: 500 });
    await waitForLog(baton, message);
    t.match(await get('/'), { status: 200, body: 'of the service' });
    t.match(await baton.stats('cluster.service.upstream_'), { cx_total: 1, rq_active: 0, rq_timeout: 0 });
  });
}
