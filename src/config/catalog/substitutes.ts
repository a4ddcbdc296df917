// Hints for Envoy extensions that Baton lacks: what replaces a part of their work, or why they are not needed.

const AGENTS_SEND = 'log to standard output or a file, from which an agent can forward the lines';
const WRITE_ONE = 'docs/filters-in-typescript.md shows how to write a filter that is loaded at run time';

/** Keyed by the package of the extension, below `envoy.extensions`. */
export const SUBSTITUTES: Readonly<Record<string, string>> = {
  'access_loggers.fluentd': AGENTS_SEND,
  'filters.http.dynamic_modules': WRITE_ONE,
  'filters.http.gzip': 'envoy.filters.http.compressor compresses responses',
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
