// Invalid configurations, with errors at credentials and beside them.

import type { ResourceType } from '../../../src/xds/resource.js';
import type { Config } from '../harness/index.js';
import { added, cluster, endpoint, listener, routeConfiguration, secret, uri, virtualHost } from './credentials.js';

const ADS = { resource_api_version: 'V3', ads: {} };

const bad = (key: string, value: string): Config => ({ request_headers_to_add: [added(key, value)] });

/** Errors at credentials and beside them, in routes. */
const badRoutes = (): (readonly [what: string, routes: Config, error: RegExp])[] => [
  ['an operator', bad('authorization', `Bearer %${secret()}%`), /value: /],
  ['an open operator', bad('x-api-key', `${secret()}%REQ(`), /value: /],
  ['a line end', bad('cookie', `${secret()}\n`), /value: /],
  ['a name', bad(`x y${uri()}`, 'a'), /key: /],
  ['a URI with an operator', bad('x-to', `${uri()}%NOPE%`), /value: /],
  [
    'an expression',
    { virtual_hosts: [matching({ name: 'authorization', string_match: { safe_regex: { regex: `${secret()}(` } } })] },
    /regex: /,
  ],
  [
    'an old form of it',
    { virtual_hosts: [matching({ name: 'x-token', safe_regex_match: { regex: `(${secret()}` } })] },
    /regex: /,
  ],
  ['an unimplemented field', { virtual_hosts: [notImplemented()] }, /filter_state/],
  [
    'a redirect',
    {
      virtual_hosts: [
        { ...matching(), routes: [{ match: { prefix: '/' }, redirect: { path_redirect: `${uri()}\n` } }] },
      ],
    },
    /path_redirect/,
  ],
];

function matching(header?: Config): Config {
  const match = { prefix: '/', ...(header && { headers: [header] }) };
  return { name: 'v', domains: ['*'], routes: [{ match, direct_response: { status: 200 } }] };
}

function notImplemented(): Config {
  const match = {
    prefix: '/',
    cookies: [{ name: 'canary', string_match: { exact: secret() } }],
    filter_state: [{ key: 'canary', string_match: { exact: 'yes' } }],
  };
  return { ...virtualHost('v', '*', 'dynamic'), routes: [{ match, route: { cluster: 'dynamic' } }] };
}

/** Invalid bootstraps, as a message or as a text. */
export function mistakes(): (readonly [what: string, broken: Config | string])[] {
  const routes = badRoutes().map(([what, more]) => {
    const listeners = [listener('static', { route_config: { ...routeConfiguration('r', 'static'), ...more } })];
    return [what, { static_resources: { listeners, clusters: [cluster('static', 1)] } }] as const;
  });
  const filter = (typed_config: Config): Config => ({
    static_resources: {
      listeners: [
        listener('static', { route_config: routeConfiguration('r', 'static') }, [{ name: 'x', typed_config }]),
      ],
      clusters: [cluster('static', 1)],
    },
  });
  const type = (name: string) => `type.googleapis.com/envoy.extensions.filters.http.${name}`;
  const inFlow = (fields: string) => `static_resources: { clusters: [ { name: a, ${fields} } ] }`;
  return [
    ...routes,
    ['an unknown extension', filter({ '@type': 'type.googleapis.com/acme.Auth', api_key: secret(), url: uri() })],
    ['a known one', filter({ '@type': type('ext_authz.v3.ExtAuthz'), http_service: { server_uri: { uri: uri() } } })],
    ['a mistyped value', { admin: { access_log: [{ password: secret() }] } }],
    ['a password that is a list', { admin: { address: { pipe: { path: uri('/x'), mode: uri() } } } }],
    ['an unknown field beside', inFlow(`metadata: { filter_metadata: { a: { token: ${secret()} } } }, x: 1`)],
    ['another one', inFlow(`initial_metadata: [ { key: a, value: ${secret()} } ], x: 1`)],
    ['a number', inFlow(`x: 1, connect_timeout: ${uri()}`)],
    ['a quote that is missing', inFlow(`metadata: { filter_metadata: { a: { token: "${secret()} } } }`)],
    ['a bracket too many', `${inFlow(`health_checks: [ { key: x-api-key, value: ${secret()} } ]`)} }`],
    ['a URI in a broken text', `${inFlow(`name: ${uri()}`)} }`],
    ['a scheme in a broken text', `${inFlow(`name: Bearer ${secret()}`)} }`],
    ['a tab', `a:\n\t- authorization: ${secret()}\n`],
    ['an alias', `a: &a { key: authorization, value: &v ${secret()} }\nb: { <<: *a, c: *v, d: *nowhere }\n`],
  ];
}

/** Resources that are rejected. */
export function refusals(
  port: number,
): (readonly [what: string, type: ResourceType, resource: Config, error: RegExp])[] {
  const withRoutes = (more: Config): Config => ({ ...routeConfiguration('routes', 'dynamic'), ...more });
  return [
    ...badRoutes().map(([what, more, error]) => [`route: ${what}`, 'route', withRoutes(more), error] as const),
    // The same rules apply there.
    ...badRoutes()
      .slice(0, 4)
      .map(
        ([what, more, error]) =>
          [`listener: ${what}`, 'listener', listener('dynamic', { route_config: withRoutes(more) }), error] as const,
      ),
    [
      'cluster',
      'cluster',
      { ...cluster('dynamic', port, ADS), transport_socket: { name: 'x', typed_config: grpcCredentials() } },
      /transport_socket/,
    ],
    [
      'endpoints',
      'endpoints',
      {
        cluster_name: 'dynamic',
        endpoints: [{ lb_endpoints: [{ ...endpoint(port), load_balancing_weight: 0 }] }],
        named_endpoints: { a: { hostname: uri() } },
      },
      /named_endpoints/,
    ],
    ['extension-config', 'extension-config', { name: 'discovered', typed_config: grpcCredentials() }, /typed_config/],
  ];
}

/** A message of the API that Baton does not implement. */
function grpcCredentials(): Config {
  return {
    '@type': 'type.googleapis.com/envoy.config.core.v3.GrpcService',
    google_grpc: {
      target_uri: uri(),
      stat_prefix: 'a',
      call_credentials: [{ access_token: secret() }, { google_refresh_token: secret() }],
    },
    initial_metadata: [{ key: 'x-tenant', value: secret() }],
  };
}
