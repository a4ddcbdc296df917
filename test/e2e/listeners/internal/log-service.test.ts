// Access log services get the addresses of internal listeners as such. The result is that of Envoy 1.40.

import { startLogService } from '../../access-log-service/service.js';
import { besideEnvoy } from '../../harness/envoy.js';
import { HTTP2_CLUSTER, httpListener, httpRequest, startBaton, staticCluster } from '../../harness/index.js';
import { answering, managerOf, routeTo } from '../../http/proxy.js';
import { internal, internalBootstrap, internalCluster } from './config.js';

const TYPE = 'type.googleapis.com/envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig';

besideEnvoy('a service gets the names of internal listeners and the IDs of endpoints', async (t, program) => {
  const service = await startLogService(t);
  const common_config = {
    log_name: 'requests',
    transport_api_version: 'V3',
    grpc_service: { envoy_grpc: { cluster_name: 'als' } },
    buffer_flush_interval: '0.05s',
  };
  const log = { name: 'envoy.access_loggers.http_grpc', typed_config: { '@type': TYPE, common_config } };
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1'],
    config: internalBootstrap(
      [
        httpListener('front', 0, managerOf([routeTo({ prefix: '/' }, 'inner')])),
        internal(httpListener('inner', 0, managerOf([answering({ prefix: '/' }, 'inner')], { access_log: [log] }))),
      ],
      [internalCluster('inner', 'inner', 'e:1'), staticCluster('als', service.port, HTTP2_CLUSTER)],
      { node: { id: 'n', cluster: 'c' } },
    ),
  });
  t.match(await httpRequest(await baton.listenerPort('front')), { status: 200, body: 'inner' });
  const [entry] = await service.entries(1);
  const address = { envoy_internal_address: { server_listener_name: 'inner', endpoint_id: 'e:1' } };
  const client = { envoy_internal_address: { server_listener_name: 'internal_client_address' } };
  t.match(entry!.common_properties, {
    downstream_local_address: address,
    downstream_remote_address: client,
    downstream_direct_remote_address: client,
  });
});
