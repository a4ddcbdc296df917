// Requests that filters answer before the router runs: their logs and headers name the cluster of the route.

import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  fileAccessLog,
  logLines,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, headerOption, routeConfig, routeTo, startProxy } from '../proxy.js';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';

t.test('%UPSTREAM_CLUSTER% is the cluster of the route, whichever filter answers', async (t) => {
  const host = await startUpstream(t, (_request, answer) => answer.end('from the host'));
  const file = join(tempDir(t), 'log');
  const any = { any: true };
  const policy = {
    permissions: [{ header: { name: 'x-role', string_match: { exact: 'bad' } } }],
    principals: [any],
  };
  const http_filters: Config[] = [
    {
      name: 'rbac',
      typed_config: { '@type': `${FILTERS}.rbac.v3.RBAC`, rules: { action: 'DENY', policies: { bad: policy } } },
    },
    {
      name: 'fault',
      typed_config: {
        '@type': `${FILTERS}.fault.v3.HTTPFault`,
        abort: { http_status: 418, percentage: { numerator: 100 } },
        headers: [{ name: 'x-fault', present_match: true }],
      },
    },
    { name: 'router', typed_config: { '@type': `${FILTERS}.router.v3.Router` } },
  ];
  const response_headers_to_add = [headerOption('x-cluster', '%UPSTREAM_CLUSTER%')];
  const routes = [
    { ...routeTo({ path: '/host' }, 'host'), response_headers_to_add },
    routeTo({ path: '/missing' }, 'missing'),
    answering({ path: '/direct' }, 'here'),
  ];
  const { get } = await startProxy(t, {
    listeners: {
      main: {
        route_config: routeConfig([{ name: 'all', domains: ['*'], routes }], { validate_clusters: false }),
        http_filters,
        access_log: [fileAccessLog(file, '%REQ(:path)% %RESPONSE_CODE% %UPSTREAM_CLUSTER% %UPSTREAM_CLUSTER_RAW%\n')],
      },
    },
    clusters: [staticCluster('host', host.port, { alt_stat_name: 'other' })],
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
  });
  const denied = await get('/host', { headers: { 'x-role': 'bad' } });
  t.match(denied, { status: 403, headers: { 'x-cluster': 'other' } });
  t.equal((await get('/host', { headers: { 'x-fault': '1' } })).status, 418);
  t.equal((await get('/host')).status, 200);
  for (const path of ['/missing', '/direct', '/none']) await get(path, { headers: { 'x-fault': '1' } });
  await waitFor(() => logLines(file).length === 6, { what: 'a line for each request' });
  t.same(logLines(file), [
    '/host 403 other host',
    '/host 418 other host',
    '/host 200 other host',
    '/missing 418 - -',
    '/direct 418 - -',
    '/none 418 - -',
  ]);
});
