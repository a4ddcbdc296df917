// What a module exports: checks that it is a definition of a known kind, with hooks that exist.

import type { AccessLogger, HttpFilter, NetworkFilter } from '../api/index.js';
import { nearest } from '../common/text/suggest.js';
import type { ScriptKind } from './image.js';

/** The definitions by kind. */
export interface Definitions {
  readonly 'http filter': HttpFilter;
  readonly 'network filter': NetworkFilter;
  readonly 'access logger': AccessLogger;
}

/** The names that a definition may have, and those of them that are hooks. */
const NAMES: { readonly [K in ScriptKind]: { readonly maker: string; readonly hooks: readonly string[] } } = {
  'http filter': { maker: 'defineHttpFilter', hooks: ['onRequest', 'onResponse', 'onStreamEnd'] },
  'network filter': { maker: 'defineNetworkFilter', hooks: ['onConnection', 'onData', 'onClose'] },
  'access logger': { maker: 'defineAccessLogger', hooks: ['onLog'] },
};

/** The property that defineHttpFilter() and the like set. */
const KIND = Symbol.for('baton.kind');

/** Returns the definition that a module exports as its default. Throws an Error that says what is wrong with it. */
export function definitionOf<K extends ScriptKind>(
  exports: Readonly<Record<string, unknown>>,
  kind?: K,
): Definitions[K] {
  const definition = exports['default'];
  if (definition === undefined) throw new Error('it has no default export: export default defineHttpFilter({ … })');
  const own = kindOf(definition);
  if (own === undefined)
    throw new Error(
      'its default export is not made with defineHttpFilter() or the like: export default defineHttpFilter({ … })',
    );
  if (kind !== undefined && own !== kind) throw new Error(`it defines ${withArticle(own)}, not ${withArticle(kind)}`);
  checkNames(definition as object, own);
  return definition as Definitions[K];
}

function withArticle(kind: ScriptKind): string {
  return `${kind === 'network filter' ? 'a' : 'an'} ${kind}`;
}

function kindOf(definition: unknown): ScriptKind | undefined {
  if (typeof definition !== 'object' || definition === null) return undefined;
  const kind = (definition as { readonly [KIND]?: unknown })[KIND];
  return typeof kind === 'string' && Object.hasOwn(NAMES, kind) ? (kind as ScriptKind) : undefined;
}

function checkNames(definition: object, kind: ScriptKind): void {
  const { hooks, maker } = NAMES[kind];
  const known = [...hooks, 'config'];
  for (const [name, value] of Object.entries(definition)) {
    if (!known.includes(name)) {
      const similar = nearest(name, known);
      const hint = similar === undefined ? `; there are ${known.join(', ')}` : `; did you mean '${similar}'?`;
      throw new Error(`${maker}() does not know '${name}'${hint}`);
    }
    if (name !== 'config' && value !== undefined && typeof value !== 'function')
      throw new Error(`${name} must be a function`);
  }
  if (!hooks.some((hook) => hook in definition && (definition as Record<string, unknown>)[hook] !== undefined))
    throw new Error(`it has none of the hooks ${hooks.join(', ')}`);
}
