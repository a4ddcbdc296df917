// What the rest of Baton reads of TLS connections: the certificate of a client in headers, logs, routes and RBAC, the scheme, and
// the session and certificate of a host in logs. Texts that TLS makes at random are compared with the certificates themselves.

import { X509Certificate } from 'node:crypto';
import type { Test } from 'tap';
import { Authority, type IssuedCertificate } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  logLines,
  startBaton,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf, routeTo } from '../http/proxy.js';
import {
  clientTls,
  httpsGet,
  httpsListener,
  serverTls,
  startPlainHost,
  startSecureHost,
  trustedCa,
} from './contexts.js';

const root = await Authority.create();
const server = await root.issue({
  commonName: 'server',
  names: ['server.test', { type: 'url', value: 'spiffe://server' }],
});
const user = await root.issue({
  subject: 'CN=user \\"one\\",O=Org',
  names: [{ type: 'url', value: 'spiffe://user' }, 'user.test', { type: 'email', value: 'user@user.test' }],
});
const HASH = hashOf(user);
const ca = root.certificate;
const credentials = { ca, cert: user.chain, key: user.key };
const validation_context = trustedCa(root);
const ROUTER = {
  name: 'router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

function hashOf({ certificate }: IssuedCertificate): string {
  return new X509Certificate(certificate).fingerprint256.replaceAll(':', '').toLowerCase();
}

/** Starts a listener that accepts clients with and without a certificate. */
async function start(t: Test, program: ProxyProgram, manager: Config, clusters: Config[] = []) {
  const listener = httpsListener('main', serverTls([server], { validation_context }), manager);
  const args = ['--concurrency', '1', '--file-flush-interval-msec', '20', '-l', 'warning'];
  const baton = await startBaton(t, { ...program, args, config: bootstrap({ listeners: [listener], clusters }) });
  return baton.listenerPort('main');
}

besideEnvoy('x-forwarded-client-cert has the certificate, and x-forwarded-proto is https', async (t, program) => {
  const headers: (string | string[] | undefined)[][] = [];
  const host = await startPlainHost(t, (request, response) => {
    headers.push([request.headers['x-forwarded-client-cert'], request.headers['x-forwarded-proto']]);
    response.end();
  });
  const port = await start(
    t,
    program,
    managerOf([routeTo({ prefix: '/' }, 'host')], {
      codec_type: 'HTTP1',
      use_remote_address: true,
      forward_client_cert_details: 'APPEND_FORWARD',
      set_current_client_cert_details: { subject: true, uri: true, dns: true, issuer: true },
    }),
    [staticCluster('host', host)],
  );
  await httpsGet(port, credentials);
  await httpsGet(port, { ca });
  const text = `By=spiffe://server;Hash=${HASH};Subject="O=Org,CN=user \\"one\\"";URI=spiffe://user;DNS=user.test;Issuer="CN=Test Root"`;
  t.same(headers, [
    [text, 'https'],
    [undefined, 'https'],
  ]);
});

besideEnvoy('routes and RBAC distinguish clients by their certificate', async (t, program) => {
  const principals = [{ authenticated: { principal_name: { exact: 'spiffe://user' } } }];
  const rules = { policies: { users: { permissions: [{ url_path: { path: { exact: '/users' } } }], principals } } };
  const rbac = {
    name: 'rbac',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC',
      rules: { ...rules, policies: { ...rules.policies, others: others() } },
    },
  };
  const routes = [
    answering({ prefix: '/', tls_context: { presented: true, validated: true } }, 'verified'),
    answering({ prefix: '/', tls_context: { presented: false } }, 'anonymous'),
  ];
  const port = await start(t, program, managerOf(routes, { codec_type: 'HTTP1', http_filters: [rbac, ROUTER] }));
  t.match(await httpsGet(port, credentials, '/users'), { status: 200, body: 'verified' });
  t.match(await httpsGet(port, { ca }, '/users'), { status: 403 });
  t.match(await httpsGet(port, credentials, '/a'), { status: 200, body: 'verified' });
  t.match(await httpsGet(port, { ca }, '/a'), { status: 200, body: 'anonymous' });
});

besideEnvoy('the subject of a client without a certificate is empty for expressions', async (t, program) => {
  const subject = {
    select_expr: { operand: { ident_expr: { name: 'connection' } }, field: 'subject_peer_certificate' },
  };
  const args = [subject, { const_expr: { string_value: 'CN=somebody' } }];
  const condition = { call_expr: { function: '_!=_', args } };
  const rbac = {
    name: 'rbac',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC',
      rules: {
        action: 'DENY',
        policies: { p: { permissions: [{ any: true }], principals: [{ any: true }], condition } },
      },
    },
  };
  const routes = [answering({ prefix: '/' }, 'yes')];
  const port = await start(t, program, managerOf(routes, { codec_type: 'HTTP1', http_filters: [rbac, ROUTER] }));
  t.match(await httpsGet(port, { ca }), { status: 403 });
});

/** Any TLS client may request other paths. */
function others(): Config {
  const users = { url_path: { path: { exact: '/users' } } };
  return { permissions: [{ not_rule: users }], principals: [{ authenticated: {} }] };
}

besideEnvoy('access logs have the sessions and certificates of clients and hosts', async (t, program) => {
  const logFile = `${tempDir(t)}/access.log`;
  const sides = ['DOWNSTREAM', 'UPSTREAM'];
  const operators = [
    ...sides.flatMap((side) =>
      ['TLS_VERSION', 'TLS_CIPHER', 'TLS_GROUP', 'PEER_SUBJECT', 'PEER_ISSUER', 'PEER_URI_SAN', 'PEER_DNS_SAN'].map(
        (name) => `${side}_${name}`,
      ),
    ),
    ...['SERIAL', 'FINGERPRINT_256', 'CHAIN_SERIALS', 'EMAIL_SAN'].map((name) => `DOWNSTREAM_PEER_${name}`),
    ...['DOWNSTREAM_PEER_CERT_V_START(%s)', 'UPSTREAM_PEER_CERT_V_END(%s)', 'UPSTREAM_SERVER_NAME'],
    ...['DOWNSTREAM_LOCAL_SUBJECT', 'DOWNSTREAM_LOCAL_URI_SAN', 'UPSTREAM_LOCAL_URI_SAN'],
  ];
  const { port: host } = await startSecureHost(t, server, (_request, response) => void response.end());
  const tls_params = { tls_minimum_protocol_version: 'TLSv1_3', tls_maximum_protocol_version: 'TLSv1_3' };
  const transport_socket = clientTls(
    {
      tls_params,
      tls_certificates: [
        { certificate_chain: { inline_string: user.chain }, private_key: { inline_string: user.key } },
      ],
    },
    { sni: 'server.test' },
  );
  const format = operators.map((operator) => `%${operator}%`).join('|');
  const port = await start(
    t,
    program,
    managerOf([routeTo({ prefix: '/' }, 'host')], {
      codec_type: 'HTTP1',
      access_log: [fileAccessLog(logFile, `${format}\n`)],
    }),
    [staticCluster('host', host, { transport_socket })],
  );
  await httpsGet(port, credentials);
  await httpsGet(port, { ca, maxVersion: 'TLSv1.2' });
  const lines = await waitFor(() => logLines(logFile).length === 2 && logLines(logFile));
  const [first, second] = lines.map((line) =>
    Object.fromEntries(line.split('|').map((value, index) => [operators[index]!, value])),
  );
  const x509 = new X509Certificate(user.certificate);
  const seconds = (text: string) => String(Date.parse(text) / 1000);
  const host_ = {
    UPSTREAM_TLS_VERSION: 'TLSv1.3',
    UPSTREAM_PEER_SUBJECT: 'CN=server',
    UPSTREAM_PEER_ISSUER: 'CN=Test Root',
    UPSTREAM_PEER_URI_SAN: 'spiffe://server',
    UPSTREAM_PEER_DNS_SAN: 'server.test',
    'UPSTREAM_PEER_CERT_V_END(%s)': seconds(new X509Certificate(server.certificate).validTo),
    UPSTREAM_SERVER_NAME: 'server.test',
    UPSTREAM_LOCAL_URI_SAN: 'spiffe://user',
    DOWNSTREAM_LOCAL_SUBJECT: 'CN=server',
    DOWNSTREAM_LOCAL_URI_SAN: 'spiffe://server',
  };
  t.match(first, {
    ...host_,
    DOWNSTREAM_TLS_VERSION: 'TLSv1.3',
    DOWNSTREAM_TLS_CIPHER: /^TLS_/,
    DOWNSTREAM_TLS_GROUP: 'X25519',
    DOWNSTREAM_PEER_SUBJECT: 'O=Org,CN=user \\"one\\"',
    DOWNSTREAM_PEER_ISSUER: 'CN=Test Root',
    DOWNSTREAM_PEER_URI_SAN: 'spiffe://user',
    DOWNSTREAM_PEER_DNS_SAN: 'user.test',
    DOWNSTREAM_PEER_SERIAL: x509.serialNumber.toLowerCase(),
    DOWNSTREAM_PEER_FINGERPRINT_256: HASH,
    DOWNSTREAM_PEER_CHAIN_SERIALS: x509.serialNumber.toLowerCase(),
    DOWNSTREAM_PEER_EMAIL_SAN: 'user@user.test',
    'DOWNSTREAM_PEER_CERT_V_START(%s)': seconds(x509.validFrom),
  });
  t.match(second, {
    ...host_,
    DOWNSTREAM_TLS_VERSION: 'TLSv1.2',
    DOWNSTREAM_TLS_CIPHER: /^ECDHE-ECDSA-/,
    DOWNSTREAM_PEER_SUBJECT: '-',
    DOWNSTREAM_PEER_SERIAL: '-',
    DOWNSTREAM_PEER_CHAIN_SERIALS: '-',
    'DOWNSTREAM_PEER_CERT_V_START(%s)': '-',
  });
});
