// Clients without TLS: x-forwarded-client-cert is removed unless it is always forwarded, and no certificate is presented.

import { besideEnvoy } from '../../harness/envoy.js';
import { httpRequest, staticCluster } from '../../harness/index.js';
import { answering, managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const MODES = ['SANITIZE', 'FORWARD_ONLY', 'APPEND_FORWARD', 'SANITIZE_SET', 'ALWAYS_FORWARD_ONLY'];
const SENT = 'By=spiffe://forged;Hash=ab';

besideEnvoy('a plain client cannot claim a certificate, unless the header is always forwarded', async (t, program) => {
  const heads: string[] = [];
  const { port } = await startRawUpstream(t, ({ head, socket }) => {
    heads.push(head);
    socket.write(response(200));
  });
  const managers = MODES.map((forward_client_cert_details) => [
    forward_client_cert_details,
    managerOf([routeTo({ prefix: '/' }, 'host')], {
      forward_client_cert_details,
      set_current_client_cert_details: { subject: true, cert: true, chain: true, dns: true, uri: true },
    }),
  ]);
  const clusters = [staticCluster('host', port)];
  const { ports } = await startProxy(t, { ...program, listeners: Object.fromEntries(managers), clusters });
  for (const mode of MODES) {
    await httpRequest(ports[mode]!, '/', { headers: { 'x-forwarded-client-cert': SENT } });
    const line = heads
      .at(-1)!
      .split('\r\n')
      .find((each) => /^x-forwarded-client-cert:/i.test(each));
    t.equal(line, mode === 'ALWAYS_FORWARD_ONLY' ? `x-forwarded-client-cert: ${SENT}` : undefined, mode);
  }
});

besideEnvoy('a plain client presents no certificate, which routes and RBAC can require', async (t, program) => {
  const rules = { policies: { tls: { permissions: [{ any: true }], principals: [{ authenticated: {} }] } } };
  const rbac = {
    name: 'rbac',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC', rules },
  };
  const router = {
    name: 'router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  };
  const routes = [
    answering({ prefix: '/', tls_context: { presented: true } }, 'presented'),
    answering({ prefix: '/', tls_context: { validated: true } }, 'validated'),
    answering({ prefix: '/', tls_context: { presented: false, validated: false } }, 'anonymous'),
  ];
  const { ports } = await startProxy(t, {
    ...program,
    listeners: { open: managerOf(routes), guarded: managerOf(routes, { http_filters: [rbac, router] }) },
  });
  t.equal((await httpRequest(ports['open']!, '/')).body, 'anonymous');
  t.equal((await httpRequest(ports['guarded']!, '/')).status, 403);
});
