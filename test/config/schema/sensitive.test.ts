import t from 'tap';
import { loadSchema } from '../../../src/config/schema/schema.js';
import { redact, sensitiveValues } from '../../../src/config/schema/sensitive.js';

const TLS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3';

t.test('what the API marks as sensitive is not shown, wherever it is, and the rest is left as it was', async (t) => {
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
  t.strictSame(bootstrap, before, 'the server itself keeps its keys');
  t.equal(shown.static_resources.clusters[0], bootstrap.static_resources.clusters[0], 'what holds no secret is shared');
});

t.test('an Any that is packed in others hides nothing', async (t) => {
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

t.test('a configuration without secrets is shown as it is', async (t) => {
  const bootstrap = { static_resources: { clusters: [{ name: 'plain' }] } };
  const values = sensitiveValues(loadSchema(), 'envoy.config.bootstrap.v3.Bootstrap', bootstrap);
  t.equal(redact(bootstrap, values), bootstrap);
});
