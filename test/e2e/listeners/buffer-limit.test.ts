// per_connection_buffer_limit_bytes of a listener as the limit of the body that is buffered.

import t from 'tap';
import {
  bootstrap,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
} from '../harness/index.js';

const upstream = await startUpstream(t, (request, answer) => {
  request.resume().on('end', () => {
    answer.statusCode = request.headers['x-envoy-attempt-count'] === '1' ? 503 : 200;
    answer.end();
  });
});
const retried = routeAllTo('upstream', { retry_policy: { retry_on: '5xx' } });
(retried['virtual_hosts'] as { include_request_attempt_count?: boolean }[])[0]!.include_request_attempt_count = true;
const listener = (name: string, limit: number) => ({
  ...httpListener(name, 0, { route_config: retried }),
  per_connection_buffer_limit_bytes: limit,
});
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [listener('small', 100), listener('none', 0)],
    clusters: [staticCluster('upstream', upstream.port, { per_connection_buffer_limit_bytes: 0 })],
  }),
});

t.test('a body above the limit is not buffered for a retry; 0 means no limit', async (t) => {
  const statusOf = async (name: string, bytes: number) =>
    (await httpRequest(await baton.listenerPort(name), '/', { method: 'POST', body: 'x'.repeat(bytes) })).status;
  t.equal(await statusOf('small', 100), 200);
  t.equal(await statusOf('small', 101), 503);
  t.equal(await statusOf('none', 1), 200);
  t.equal(await statusOf('none', 50_000), 200);
});
