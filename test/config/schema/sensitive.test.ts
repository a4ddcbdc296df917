import t from 'tap';
import type { Message } from '../../../src/config/schema/decode.js';
import { loadSchema } from '../../../src/config/schema/schema.js';
import { redact, sensitiveValues } from '../../../src/config/schema/sensitive.js';

const PROTOBUF = 'type.googleapis.com/google.protobuf';
const TLS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3';

t.test('values that the API marks as sensitive are hidden everywhere, and all others are unchanged', async (t) => {
  const bootstrap = {
    node: { id: 'a' },
    static_resources: {
      secrets: [
        {
          name: 'server',
          tls_certificate: {
            certificate_chain: { filename: '/chain.pem' },
            private_key: { inline_string: 'SECRET KEY' },
            password: { inline_bytes: 'U0VDUkVU' },
          },
        },
      ],
      clusters: [
        { name: 'plain' },
        {
          name: 'tls',
          transport_socket: {
            name: 'tls',
            typed_config: {
              '@type': `${TLS}.UpstreamTlsContext`,
              sni: 'example.com',
              common_tls_context: { tls_certificates: [{ private_key: { filename: '/SECRET.pem' } }] },
            },
          },
        },
      ],
    },
  };
  const before = structuredClone(bootstrap);
  const values = sensitiveValues(loadSchema(), 'envoy.config.bootstrap.v3.Bootstrap', bootstrap);
  const shown = redact(bootstrap, values);
  t.notMatch(JSON.stringify(shown), /SECRET|U0VDUkVU/);
  t.match(shown.static_resources.secrets[0], {
    tls_certificate: {
      certificate_chain: { filename: '/chain.pem' },
      private_key: { inline_string: '[redacted]' },
      password: { inline_bytes: Buffer.from('[redacted]').toString('base64') },
    },
  });
  t.match(shown.static_resources.clusters[1], {
    transport_socket: {
      typed_config: {
        sni: 'example.com',
        common_tls_context: { tls_certificates: [{ private_key: { filename: '[redacted]' } }] },
      },
    },
  });
  t.strictSame(bootstrap, before, 'the original keeps its keys');
  t.equal(
    shown.static_resources.clusters[0],
    bootstrap.static_resources.clusters[0],
    'parts without secrets are shared',
  );
});

t.test('secrets in a nested Any are hidden', async (t) => {
  const key = { '@type': `${TLS}.TlsCertificate`, private_key: { inline_string: 'SECRET' } };
  const pack = (value: unknown) => ({ '@type': 'type.googleapis.com/google.protobuf.Any', value });
  const cluster = {
    metadata: {
      typed_filter_metadata: { once: pack(key), twice: pack(pack(key)), garbled: pack('x'), none: pack(null) },
    },
  };
  const shown = redact(cluster, sensitiveValues(loadSchema(), 'envoy.config.cluster.v3.Cluster', cluster));
  const hidden = { ...key, private_key: { inline_string: '[redacted]' } };
  t.same(shown.metadata.typed_filter_metadata, {
    once: pack(hidden),
    twice: pack(pack(hidden)),
    garbled: pack('x'),
    none: pack(null),
  });
});

t.test('a configuration without secrets is unchanged', async (t) => {
  const bootstrap = { static_resources: { clusters: [{ name: 'plain' }] } };
  const values = sensitiveValues(loadSchema(), 'envoy.config.bootstrap.v3.Bootstrap', bootstrap);
  t.equal(redact(bootstrap, values), bootstrap);
});

/** By message: hidden values and shown values. */
const CREDENTIALS: readonly (readonly [message: string, value: object, shown: object])[] = [
  [
    'core.v3.GrpcService',
    { initial_metadata: [{ key: 'x-tenant', value: 'HUSH' }, { key: 'a-bin', raw_value: 'SFVTSA==' }, { key: 'b' }] },
    {
      initial_metadata: [
        { key: 'x-tenant', value: '[redacted]' },
        { key: 'a-bin', raw_value: Buffer.from('[redacted]').toString('base64') },
        { key: 'b' },
      ],
    },
  ],
  [
    'core.v3.HealthCheck.GrpcHealthCheck',
    {
      service_name: 'a',
      initial_metadata: [{ header: { key: 'x-tenant', value: 'HUSH' }, append_action: 'ADD_IF_ABSENT' }],
    },
    {
      service_name: 'a',
      initial_metadata: [{ header: { key: 'x-tenant', value: '[redacted]' }, append_action: 'ADD_IF_ABSENT' }],
    },
  ],
  [
    'core.v3.GrpcService.GoogleGrpc',
    { target_uri: 'dns:///a', call_credentials: [{ access_token: 'HUSH' }], credentials_factory_name: 'plain' },
    { target_uri: 'dns:///a', call_credentials: [{ access_token: '[redacted]' }], credentials_factory_name: 'plain' },
  ],
  [
    'trace.v3.LightstepConfig',
    { access_token: { inline_string: 'HUSH' } },
    { access_token: { inline_string: '[redacted]' } },
  ],
  ['trace.v3.LightstepConfig', { access_token: { filename: '/token' } }, { access_token: { filename: '/token' } }],
  [
    'route.v3.RouteMatch',
    { cookies: [{ name: 'canary', string_match: { exact: 'HUSH', ignore_case: true } }], prefix: '/a' },
    { cookies: [{ name: 'canary', string_match: { exact: '[redacted]', ignore_case: true } }], prefix: '/a' },
  ],
  [
    'route.v3.RouteAction.HashPolicy',
    { cookie: { name: 'session', path: '/', ttl: '5s', attributes: [{ name: 'SameSite', value: 'Lax' }] } },
    { cookie: { name: 'session', path: '/', ttl: '5s', attributes: [{ name: 'SameSite', value: 'Lax' }] } },
  ],
  [
    'route.v3.RateLimit.Action',
    { generic_key: { descriptor_key: 'api_key', descriptor_value: 'HUSH' } },
    { generic_key: { descriptor_key: 'api_key', descriptor_value: '[redacted]' } },
  ],
  [
    'route.v3.HeaderMatcher',
    { name: 'authorization', present_match: true, treat_missing_header_as_empty: true },
    { name: 'authorization', present_match: true, treat_missing_header_as_empty: true },
  ],
  [
    'core.v3.HeaderValueOption',
    { header: { key: 'authorization', value: 'Bearer %REQ(x-token)%' } },
    { header: { key: 'authorization', value: 'Bearer %REQ(x-token)%' } },
  ],
  [
    'core.v3.Metadata',
    { typed_filter_metadata: { a: { '@type': `${PROTOBUF}.Struct`, value: { password: 'HUSH', b: 'c' } } } },
    { typed_filter_metadata: { a: { '@type': `${PROTOBUF}.Struct`, value: { password: '[redacted]', b: 'c' } } } },
  ],
  // The admin interface shows and changes runtime, which must not contain secrets.
  [
    'bootstrap.v3.RuntimeLayer',
    { name: 'a', static_layer: { 'limits.per_token': 5, uri: 'http://a:HUSH@b' } },
    { name: 'a', static_layer: { 'limits.per_token': 5, uri: 'http://a:HUSH@b' } },
  ],
];

t.test('credentials that the API does not mark are hidden', async (t) => {
  const schema = loadSchema();
  for (const [name, value, shown] of CREDENTIALS) {
    const message = `envoy.config.${name}`;
    t.same(redact(value, sensitiveValues(schema, message, value as Message)), shown, name);
  }
});
