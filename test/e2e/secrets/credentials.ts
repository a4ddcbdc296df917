// Configurations with a credential in every possible place.

import { type Config, httpListener, loopback, ROUTER_FILTER } from '../harness/index.js';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';

/** In every credential, and nowhere else. */
export const MARKER = 'hunter2-';

/** Returns the places where a marker is shown, with the text before it. */
export function leaks(what: string, text: string): string[] {
  const found = text.matchAll(
    new RegExp(`.{0,120}(?:${MARKER}|${Buffer.from(MARKER).toString('base64').slice(0, 9)}).{0,20}`, 'g'),
  );
  return Array.from(found, ([line]) => `${what}: ${line}`);
}

let last = 0;

/** Returns a unique credential. */
export function secret(): string {
  return `${MARKER}${++last}-q`;
}

export const uri = (rest = '/'): string => `https://ann:${secret()}@example.com${rest}`;
const token = (): string => `eyJhbGciOiJIUzI1NiJ9.eyJ${Buffer.from(secret()).toString('base64url')}.${secret()}`;
const header = (key: string, value = secret()): Config => ({ key, value });
export const added = (key: string, value?: string): Config => ({ header: header(key, value) });

/** Credentials identified by their names, by their form, and as bytes. */
export const headersToAdd = (operator = '%REQ(x)%'): Config[] => [
  added('authorization', `Bearer ${secret()}`),
  added('Cookie'),
  added('x-api-key'),
  added('X-Vault-Token'),
  added('x-db-password', `${operator} ${secret()}`),
  added('x-forward', `Basic ${Buffer.from(secret()).toString('base64')}=`),
  added('x-upstream', uri()),
  added('x-assertion', token()),
];

export const headersMatched = (): Config[] => [
  { name: 'authorization', string_match: { exact: `Bearer ${secret()}` } },
  { name: 'authorization', string_match: { safe_regex: { regex: `.*${secret()}` } } },
  { name: 'x-api-key', string_match: { prefix: secret(), ignore_case: true }, invert_match: true },
  { name: 'cookie', string_match: { contains: secret() } },
  { name: 'x-session-token', exact_match: secret() },
  { name: 'x-auth', safe_regex_match: { regex: secret() } },
];

export const metadata = (): Config => ({
  filter_metadata: {
    'envoy.lb': { canary: true, token: secret() },
    owner: {
      contacts: { url: uri('/a'), api_keys: [secret(), secret()] },
      password: 4711,
      list: [{ secret: secret() }],
    },
    pairs: { list: [{ key: 'authorization', value: secret() }] },
    key: { text: `-----BEGIN RSA PRIVATE KEY-----\n${secret()}\n-----END RSA PRIVATE KEY-----\n` },
  },
});

export const endpoint = (port: number): Config => ({ endpoint: { address: loopback(port) }, metadata: metadata() });

/** A cluster with `endpoints`, or of EDS with `source`. */
export const cluster = (name: string, port: number, source?: Config): Config => ({
  name,
  connect_timeout: '1s',
  metadata: metadata(),
  health_checks: [
    {
      timeout: '1s',
      interval: '1s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      http_health_check: { path: `/health?access_token=${secret()}&q=1`, request_headers_to_add: headersToAdd('a') },
    },
  ],
  ...(source === undefined
    ? { type: 'STATIC', load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [endpoint(port)] }] } }
    : { type: 'EDS', eds_cluster_config: { eds_config: source } }),
});

export const headerMutation = (): Config => ({
  '@type': `${FILTERS}.header_mutation.v3.HeaderMutation`,
  mutations: {
    request_mutations: headersToAdd().map((append) => ({ append })),
    response_mutations: [{ append: added('set-cookie') }],
  },
});

export const virtualHost = (name: string, domain: string, to: string): Config => ({
  name,
  domains: [domain],
  request_headers_to_add: headersToAdd(),
  response_headers_to_add: [added('set-cookie', `session=${secret()}; Path=/`)],
  routes: [
    {
      match: {
        prefix: '/private',
        headers: headersMatched(),
        query_parameters: [{ name: 'api_key', string_match: { exact: secret() } }],
      },
      request_headers_to_add: headersToAdd(),
      metadata: metadata(),
      route: { cluster: to },
      typed_per_filter_config: {
        mutation: {
          '@type': `${FILTERS}.header_mutation.v3.HeaderMutationPerRoute`,
          mutations: { request_mutations: [{ append: added('proxy-authorization') }] },
        },
      },
    },
    { match: { path: '/login' }, redirect: { path_redirect: `/in?client_secret=${secret()}` } },
    {
      match: { prefix: '/' },
      route: {
        weighted_clusters: { clusters: [{ name: to, weight: 1, request_headers_to_add: headersToAdd() }] },
      },
    },
  ],
});

export const routeConfiguration = (name: string, to: string): Config => ({
  name,
  request_headers_to_add: headersToAdd(),
  virtual_hosts: [virtualHost('all', '*', to)],
});

/** `routes`: the route source of its connection manager. */
export const listener = (name: string, routes: Config, filters: Config[] = []): Config => ({
  ...httpListener(name, 0, {
    ...routes,
    http_filters: [
      { name: 'mutation', typed_config: headerMutation() },
      {
        name: 'rbac',
        typed_config: {
          '@type': `${FILTERS}.rbac.v3.RBAC`,
          rules: {
            action: 'DENY',
            policies: {
              p: {
                permissions: headersMatched().map((matcher) => ({ header: matcher })),
                principals: headersMatched().map((matcher) => ({ header: matcher })),
              },
            },
          },
        },
      },
      ...filters,
      ROUTER_FILTER,
    ],
    local_reply_config: {
      mappers: [
        {
          filter: { header_filter: { header: headersMatched()[0] } },
          headers_to_add: headersToAdd(),
        },
      ],
    },
  }),
  metadata: metadata(),
});
