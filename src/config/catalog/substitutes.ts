// Hints for Envoy extensions that Baton lacks: what replaces a part of their work, or why they are not needed.

const AGENTS_SEND = 'log to standard output or a file, from which an agent can forward the lines';
const NETWORK_ONE = 'docs/filters-in-typescript.md shows how to write a network filter that is loaded at run time';
const LOGGER = 'docs/filters-in-typescript.md shows how to write an access logger that is loaded at run time';
const FORWARD = 'envoy.filters.network.tcp_proxy forwards its connections without reading them';
const WRITE_ONE = 'docs/filters-in-typescript.md shows how to write a filter that is loaded at run time';

/** Keyed by the package of the extension, below `envoy.extensions`. */
export const SUBSTITUTES: Readonly<Record<string, string>> = {
  'access_loggers.fluentd': AGENTS_SEND,
  'access_loggers.wasm': LOGGER,
  'clusters.mcp_multicluster': WRITE_ONE,
  'filters.http.a2a': WRITE_ONE,
  'filters.http.ai_protocol_manager': WRITE_ONE,
  'filters.http.dynamic_modules': WRITE_ONE,
  'filters.http.gzip': 'envoy.filters.http.compressor compresses responses',
  'filters.http.mcp': WRITE_ONE,
  'filters.http.mcp_json_rest_bridge': WRITE_ONE,
  'filters.http.mcp_router': WRITE_ONE,
  'filters.network.mongo_proxy': FORWARD,
  'filters.network.thrift_proxy': FORWARD,
  'filters.network.wasm': NETWORK_ONE,
  'transport_sockets.tap': 'envoy.filters.http.tap records requests and responses',
};

/** Returns `: a hint` for the extension of a message or canonical name; empty if there is none. */
export function substituteFor(name: string): string {
  const hint = SUBSTITUTES[packageOf(name).slice('envoy.extensions.'.length)];
  return hint === undefined ? '' : `: ${hint}`;
}

/**
 * Returns `envoy.extensions.filters.http.wasm` for `envoy.extensions.filters.http.wasm.v3.Wasm`, for its package with the version,
 * and for `envoy.filters.http.wasm`.
 */
export function packageOf(name: string): string {
  return name.replace(/\.v\d+(\..*)?$/, '').replace(/^envoy\.(?!extensions\.)/, 'envoy.extensions.');
}
