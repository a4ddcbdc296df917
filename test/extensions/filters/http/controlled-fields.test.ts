// Fields that frame a message, and its host, cannot be named where a filter sets or removes a field.

import t from 'tap';
import { apiKeyAuth } from '../../../../src/extensions/filters/http/api-key-auth/index.js';
import { bandwidthLimit } from '../../../../src/extensions/filters/http/bandwidth-limit/index.js';
import { basicAuth } from '../../../../src/extensions/filters/http/basic-auth/index.js';
import { extAuthz } from '../../../../src/extensions/filters/http/ext-authz/index.js';
import { geoip } from '../../../../src/extensions/filters/http/geoip/index.js';
import { headerToMetadata } from '../../../../src/extensions/filters/http/header-to-metadata/index.js';
import { ipTagging } from '../../../../src/extensions/filters/http/ip-tagging/index.js';
import { jwtAuthn } from '../../../../src/extensions/filters/http/jwt-authn/index.js';
import { oauth2 } from '../../../../src/extensions/filters/http/oauth2/index.js';
import { statefulSession } from '../../../../src/extensions/filters/http/stateful-session/index.js';
import { TunnelRequest } from '../../../../src/extensions/filters/network/tcp-proxy/tunnel-request.js';

const KEYS = { inline_string: JSON.stringify({ keys: [{ kty: 'oct', k: 'A'.repeat(43) }] }) };
const TYPE = 'type.googleapis.com/envoy.extensions.filters.http';

const OAUTH = {
  token_endpoint: { uri: 'https://auth.test/token', cluster: 'auth', timeout: '1s' },
  authorization_endpoint: 'https://auth.test/authorize',
  redirect_uri: 'https://app.test/callback',
  redirect_path_matcher: { path: { exact: '/callback' } },
  signout_path: { path: { exact: '/signout' } },
  credentials: { client_id: 'id', token_secret: { name: 'token' }, hmac_secret: { name: 'hmac' } },
};

interface Validating {
  validate?(config: never, report: (path: string, message: string) => void, isOfRoute: boolean): void;
}

/** The place of the name, the filter, and its configuration. */
const CASES: readonly (readonly [where: string, filter: Validating, config: (name: string) => object])[] = [
  [
    'providers["p"].claim_to_headers[0].header_name',
    jwtAuthn as Validating,
    (name) => ({
      '@type': `${TYPE}.jwt_authn.v3.JwtAuthentication`,
      providers: { p: { local_jwks: KEYS, claim_to_headers: [{ header_name: name, claim_name: 'a' }] } },
    }),
  ],
  [
    'providers["p"].forward_payload_header',
    jwtAuthn as Validating,
    (name) => ({
      '@type': `${TYPE}.jwt_authn.v3.JwtAuthentication`,
      providers: { p: { local_jwks: KEYS, forward_payload_header: name } },
    }),
  ],
  [
    'ip_tag_header.header',
    ipTagging as Validating,
    (name) => ({
      '@type': `${TYPE}.ip_tagging.v3.IPTagging`,
      ip_tags: [{ ip_tag_name: 'a', ip_list: [{ address_prefix: '10.0.0.0', prefix_len: 8 }] }],
      ip_tag_header: { header: name },
    }),
  ],
  [
    'forward_username_header',
    basicAuth as Validating,
    (name) => ({
      '@type': `${TYPE}.basic_auth.v3.BasicAuth`,
      users: { inline_string: 'user1:{SHA}tESsBmE/yNY3lb6a0L6vVQEZNqw=' },
      forward_username_header: name,
    }),
  ],
  [
    'forwarding.header',
    apiKeyAuth as Validating,
    (name) => ({
      '@type': `${TYPE}.api_key_auth.v3.ApiKeyAuth`,
      credentials: [{ key: 'k', client: 'c' }],
      key_sources: [{ header: 'x-key' }],
      forwarding: { header: name },
    }),
  ],
  [
    'http_service.authorization_request.headers_to_add[0].key',
    extAuthz as Validating,
    (key) => ({
      '@type': `${TYPE}.ext_authz.v3.ExtAuthz`,
      http_service: {
        server_uri: { uri: 'http://a', cluster: 'c', timeout: '1s' },
        authorization_request: { headers_to_add: [{ key, value: '5' }] },
      },
    }),
  ],
  [
    'request_rules[0].header',
    headerToMetadata as Validating,
    (header) => ({
      '@type': `${TYPE}.header_to_metadata.v3.Config`,
      request_rules: [{ header, on_header_present: { key: 'k' }, remove: true }],
    }),
  ],
  [
    'rules[0].requires.extract_only_without_validation.verification_status_header',
    jwtAuthn as Validating,
    (name) => ({
      '@type': `${TYPE}.jwt_authn.v3.JwtAuthentication`,
      providers: { p: { local_jwks: KEYS } },
      rules: [
        {
          match: { prefix: '/' },
          requires: { extract_only_without_validation: { verification_status_header: name } },
        },
      ],
    }),
  ],
  [
    'config.forward_id_token.header',
    oauth2 as Validating,
    (header) => ({ '@type': `${TYPE}.oauth2.v3.OAuth2`, config: { ...OAUTH, forward_id_token: { header } } }),
  ],
  [
    'provider.typed_config.common_provider_config',
    geoip as Validating,
    (city) => ({
      '@type': `${TYPE}.geoip.v3.Geoip`,
      provider: {
        name: 'maxmind',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.geoip_providers.maxmind.v3.MaxMindConfig',
          city_db_path: '/city',
          common_provider_config: { geo_field_keys: { city } },
        },
      },
    }),
  ],
  [
    'session_state.typed_config',
    statefulSession as Validating,
    (name) => ({
      '@type': `${TYPE}.stateful_session.v3.StatefulSession`,
      session_state: {
        name: 'header',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.http.stateful_session.header.v3.HeaderBasedSessionState',
          name,
        },
      },
    }),
  ],
];

for (const [where, { validate }, config] of CASES) {
  t.test(where, (t) => {
    const problems = (name: string) => {
      const reported: string[] = [];
      validate!(config(name) as never, (path, message) => void reported.push(`${path}: ${message}`), false);
      return reported;
    };
    t.same(problems('x-own'), []);
    for (const name of ['content-length', 'Transfer-Encoding', 'connection', 'upgrade', 'host'])
      t.match(
        problems(name),
        [new RegExp(`^${where.replace(/[[\]]/g, '\\$&')}: .*host'|'${name}' cannot be set`, 'i')],
        name,
      );
    t.end();
  });
}

t.test('the header of the request ID of a tunnel', (t) => {
  const create = (name: string) =>
    new TunnelRequest({ hostname: 'a:1', request_id_extension: {}, request_id_header: name } as never);
  create('x-own');
  for (const name of ['content-length', 'host']) t.throws(() => create(name), /controls the message/, name);
  t.end();
});

t.test('the prefix of trailers is a name', (t) => {
  const reported: string[] = [];
  const config = { '@type': `${TYPE}.bandwidth_limit.v3.BandwidthLimit`, limit_kbps: 1, response_trailer_prefix: ':a' };
  bandwidthLimit.validate!(config as never, (path, message) => void reported.push(`${path}: ${message}`), false);
  t.match(reported, [/^response_trailer_prefix: ":a" is not a valid header name/]);
  t.end();
});
