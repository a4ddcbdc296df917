// The modules that a bootstrap registers, and the places of a configuration that name one.

import { resolve } from 'node:path';
import type { Any, Bootstrap } from '../generated/api.js';
import { unpack } from '../schema/any.js';
import { FILTER_CONFIG } from '../schema/message-name.js';
import type { Path, PathPart } from '../text/path.js';
import type { Problem } from '../text/problem.js';

const SCRIPTS = 'baton.scripts.v1.Scripts';
/** The messages that name a module, with the kind that it must define. */
const KINDS = {
  'baton.filters.http.script.v1.Script': 'http filter',
  'baton.filters.network.script.v1.Script': 'network filter',
  'baton.access_loggers.script.v1.Script': 'access logger',
} as const;
const PER_ROUTE = 'baton.filters.http.script.v1.ScriptPerRoute';

/** What a module defines. */
export type ScriptKind = (typeof KINDS)[keyof typeof KINDS];

/** A registered module. Exactly one of `filename` (absolute) and `packageName` is set. */
export interface RegisteredScript {
  readonly name: string;
  readonly filename: string | undefined;
  readonly packageName: string | undefined;
  readonly isWatched: boolean;
  /** From the top of the bootstrap. */
  readonly path: Path;
}

/** A filter or a logger that names a module, or a route with a configuration of its own for such a filter. */
export interface NamedScript {
  readonly module: string;
  readonly kind: ScriptKind;
  readonly config: unknown;
  readonly path: Path;
  readonly isOfRoute: boolean;
}

/** A place in the texts of a bootstrap that gives a configuration to a module. */
export interface LocatedScript extends NamedScript {
  /** The problem of a configuration that the module refuses, without its message. */
  readonly place: Problem;
}

/** Modules by the names of the HTTP filters that have them. */
export type ScriptModules = ReadonlyMap<string, string>;

/** Returns the modules in the order in which they are registered. */
export function registeredScripts(bootstrap: Bootstrap): RegisteredScript[] {
  return scriptMessages(bootstrap).flatMap(({ modules, path }) =>
    Object.entries(modules).map(([name, module]) => ({
      name,
      filename: module?.filename ? resolve(module.filename) : undefined,
      packageName: module?.package || undefined,
      isWatched: module?.watch ?? false,
      path: [...path, name],
    })),
  );
}

function scriptMessages({ bootstrap_extensions: extensions = [] }: Bootstrap) {
  return extensions.flatMap((extension, index) => {
    const message = unpack(extension?.typed_config, SCRIPTS);
    const path: Path = ['bootstrap_extensions', index, 'typed_config', 'modules'];
    return message === undefined ? [] : { modules: message.modules ?? {}, path };
  });
}

/** Returns all places in a part of a configuration, which stands at `path`. */
export function namedScripts(value: unknown, path: Path = []): NamedScript[] {
  const found: NamedScript[] = [];
  walk(value, [...path], new Map(), found);
  return found;
}

/** Returns the places in a part of a route configuration, for a chain whose filters have these modules. */
export function scriptsOfRoutes(routes: unknown, filters: ScriptModules, path: Path = []): NamedScript[] {
  const found: NamedScript[] = [];
  walk(routes, [...path], filters, found);
  return found;
}

/** `filters`: of the connection manager around the value. */
function walk(value: unknown, path: PathPart[], filters: ScriptModules, found: NamedScript[]): void {
  if (typeof value !== 'object' || value === null) return;
  const script = scriptOf(value);
  if (script !== undefined) found.push({ ...script, path: [...path], isOfRoute: false });
  const { http_filters: own } = value as { readonly http_filters?: unknown };
  const known = Array.isArray(own) ? scriptModules(own) : filters;
  for (const [name, inner] of Object.entries(value)) {
    path.push(Array.isArray(value) ? Number(name) : name);
    if (name === 'typed_per_filter_config') addRoute(inner, path, known, found);
    else walk(inner, path, known, found);
    path.pop();
  }
}

function addRoute(configs: object, path: Path, filters: ScriptModules, found: NamedScript[]): void {
  for (const [filter, given] of Object.entries(configs ?? {})) {
    const module = filters.get(filter);
    const config = unpack(anyOf(unpack(anyOf(given), FILTER_CONFIG)?.config ?? given), PER_ROUTE)?.config;
    if (module !== undefined && config !== undefined)
      found.push({ module, kind: 'http filter', config, path: [...path, filter], isOfRoute: true });
  }
}

/** Returns the modules of http_filters. */
export function scriptModules(filters: readonly unknown[]): ScriptModules {
  const modules = new Map<string, string>();
  for (const filter of filters) {
    const { name, typed_config: config } = (filter ?? {}) as {
      readonly name?: string;
      readonly typed_config?: unknown;
    };
    const script = scriptOf(config);
    if (script !== undefined && name !== undefined) modules.set(name, script.module);
  }
  return modules;
}

function scriptOf(value: unknown): Pick<NamedScript, 'module' | 'kind' | 'config'> | undefined {
  const any = anyOf(value);
  if (any === undefined) return undefined;
  for (const [name, kind] of Object.entries(KINDS)) {
    const script = unpack(any, name as keyof typeof KINDS);
    if (script !== undefined) return { module: script.module ?? '', kind, config: script.config };
  }
  return undefined;
}

/** Returns undefined for what is not a message of a known type: the configuration may not have been checked. */
function anyOf(value: unknown): Any | undefined {
  const hasType = typeof (value as { readonly '@type'?: unknown } | null | undefined)?.['@type'] === 'string';
  return hasType ? (value as Any) : undefined;
}
