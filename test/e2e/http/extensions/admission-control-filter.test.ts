// admission_control: requests are rejected while hosts fail, with the outcomes and stats of Envoy 1.40.

import { createServer } from 'node:http';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import { type Config, routeAllTo, staticCluster, type Teardown } from '../../harness/index.js';
import { type HttpProxy, startProxy } from '../proxy.js';

const MESSAGE = 'envoy.extensions.filters.http.admission_control.v3.AdmissionControl';

/** Answers with the status in the path; without one it ends the connection. */
const host = createServer((request, response) => {
  const [, status, grpc] = request.url!.split('/');
  if (status === '0') response.destroy();
  else if (grpc === undefined) response.writeHead(Number(status)).end();
  else response.writeHead(200, { 'content-type': 'application/grpc', 'grpc-status': grpc }).end();
});
await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
t.teardown(() => {
  host.closeAllConnections();
  host.close();
});
const hostPort = (host.address() as { port: number }).port;

function start(t: Teardown, program: ProxyProgram, config: Config, extra: Config = {}): Promise<HttpProxy> {
  const router = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' };
  return startProxy(t, {
    ...program,
    listeners: {
      own: {
        http_filters: [
          {
            name: 'admission',
            typed_config: { '@type': `type.googleapis.com/${MESSAGE}`, success_criteria: {}, ...config },
          },
          { name: 'router', typed_config: router },
        ],
        route_config: routeAllTo('host'),
      },
    },
    clusters: [staticCluster('host', hostPort)],
    extra,
  });
}

const STAT = 'http.own.admission_control';
const percent = (value: number) => ({ default_value: { value }, runtime_key: 'unused' });

besideEnvoy('requests are rejected while most fail', async (t, program) => {
  const { baton, get } = await start(t, program, { max_rejection_probability: percent(90) });
  let rejected = 0;
  for (let count = 0; count < 100; count++) {
    const { body, status } = await get('/500');
    if (status !== 503) continue;
    rejected++;
    t.equal(body, '');
  }
  t.ok(rejected > 20 && rejected < 99, `${rejected} of 100 are rejected`);
  await baton.waitForStats({
    [`${STAT}.rq_rejected`]: rejected,
    [`${STAT}.rq_failure`]: 100 - rejected,
    [`${STAT}.rq_success`]: 0,
  });
});

besideEnvoy(
  'client errors and most statuses of gRPC are successes, lost responses are failures',
  async (t, program) => {
    const { baton, get } = await start(t, program, { rps_threshold: { default_value: 100000, runtime_key: 'unused' } });
    for (const path of ['/200', '/404', '/200/0', '/200/5']) await get(path, { headers: { te: 'trailers' } });
    for (const path of ['/500', '/0', '/200/14']) await get(path);
    await baton.waitForStats({
      [`${STAT}.rq_success`]: 4,
      [`${STAT}.rq_failure`]: 3,
      [`${STAT}.rq_rejected`]: 0,
    });
  },
);

besideEnvoy('criteria decide what a success is, and runtime whether the filter applies', async (t, program) => {
  const success_criteria = { http_criteria: { http_success_status: [{ start: 404, end: 405 }] } };
  const config = { success_criteria, enabled: { default_value: true, runtime_key: 'admission.on' } };
  const { baton, get } = await start(t, program, config);
  await get('/404');
  await baton.waitForStats({ [`${STAT}.rq_success`]: 1, [`${STAT}.rq_failure`]: 0 });
  const layers = { layers: [{ name: 'static', static_layer: { 'admission.on': false } }] };
  const off = await start(t, program, config, { layered_runtime: layers });
  await off.get('/404');
  t.equal(await off.baton.stat(`${STAT}.rq_success`), 0);
});
