// per_connection_buffer_limit_bytes of a listener, as far as it says what filters may hold back of a body.

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

t.test('a body beyond it is not kept for another try; 0 is no limit', async (t) => {
  const statusOf = async (name: string, bytes: number) =>
    (await httpRequest(await baton.listenerPort(name), '/', { method: 'POST', body: 'x'.repeat(bytes) })).status;
  t.equal(await statusOf('small', 100), 200);
  t.equal(await statusOf('small', 101), 503);
  t.equal(await statusOf('none', 1), 200);
  t.equal(await statusOf('none', 50_000), 200);
});
