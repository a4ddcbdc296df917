// What to do without an extension of Envoy that Baton lacks, where something else does a part of its work or nothing need be done.

const AGENTS_SEND = 'log to standard output or a file, from where an agent can send the lines on';
const ASK_A_SERVICE = 'a service that envoy.filters.http.ext_authz asks can decide who may pass';
const WRITE_ONE = 'docs/extending.md shows how to write a filter in TypeScript';
const NO_TLS = 'leave it out: without TLS there is nothing for it to find';
const LIMIT_MEMORY = 'leave it out, and limit the memory of the process from outside, as a cgroup or a unit does';
const HOSTS_COMPRESS = 'let the hosts compress: what they send is passed on as it is';

/** By the package of the extension, below `envoy.extensions`. */
export const SUBSTITUTES: Readonly<Record<string, string>> = {
  'access_loggers.grpc': AGENTS_SEND,
  'access_loggers.fluentd': AGENTS_SEND,
  'access_loggers.open_telemetry': AGENTS_SEND,
  'filters.http.api_key_auth': ASK_A_SERVICE,
  'filters.http.basic_auth': ASK_A_SERVICE,
  'filters.http.compressor': HOSTS_COMPRESS,
  'filters.http.dynamic_modules': WRITE_ONE,
  'filters.http.ext_proc': WRITE_ONE,
  'filters.http.gzip': HOSTS_COMPRESS,
  'filters.http.jwt_authn': ASK_A_SERVICE,
  'filters.http.lua': WRITE_ONE,
  'filters.http.oauth2': ASK_A_SERVICE,
  'filters.http.ratelimit': 'envoy.filters.http.local_ratelimit limits the requests of one process',
  'filters.http.wasm': WRITE_ONE,
  'filters.listener.http_inspector': 'leave it out: a filter chain with a connection manager takes HTTP/1.1',
  'filters.listener.tls_inspector': NO_TLS,
  'filters.network.connection_limit':
    'the runtime value envoy.resource_limits.listener.<name>.connection_limit limits the connections of a listener',
  'filters.network.ext_authz': 'before HTTP, envoy.filters.http.ext_authz can ask the service',
  'resource_monitors.cgroup_memory': LIMIT_MEMORY,
  'resource_monitors.fixed_heap': LIMIT_MEMORY,
};

/** `: a hint` for the extension that a message or a canonical name belongs to; empty if there is nothing to say. */
export function substituteFor(name: string): string {
  const hint = SUBSTITUTES[packageOf(name).slice('envoy.extensions.'.length)];
  return hint === undefined ? '' : `: ${hint}`;
}

/**
 * `envoy.extensions.filters.http.lua`, of `envoy.extensions.filters.http.lua.v3.Lua`, its package with the version, or
 * `envoy.filters.http.lua`.
 */
export function packageOf(name: string): string {
  return name.replace(/\.v\d+(\..*)?$/, '').replace(/^envoy\.(?!extensions\.)/, 'envoy.extensions.');
}
