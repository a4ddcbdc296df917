// A script filter in one filter chain on one worker. Holds the version of the module for new requests, its configuration, and the
// state that requests share.

import type { HttpFilter as Definition } from '../../../../api/index.js';
import type { ScriptScript as Script } from '../../../../config/generated/api.js';
import { sharedByStreams } from '../../../script/shared.js';
import { ScriptFilterStats } from '../../../script/stats.js';
import {
  configValue,
  type HttpChain,
  type HttpFilter,
  type HttpFilterFactory,
  type StreamControl,
  type WorkerContext,
  type WorkerScript,
} from '../../../sdk.js';
import { ScriptFilter } from './script-filter.js';
import type { SharedByRequests } from './shared.js';
import { UnusableFilter } from './unusable-filter.js';

/** A route's configuration. The object is the same for all requests of the route. */
export interface RouteScript {
  readonly config: unknown;
}

export class ScriptChain implements HttpFilterFactory {
  readonly #shared: SharedByRequests;
  readonly #script: WorkerScript;
  readonly #config: unknown;
  #generation = -1;
  #definition: Definition | undefined;
  /** Validated configurations of the current version, by RouteScript (`#own` for the filter's); undefined: it refuses the configuration. */
  #configs = new WeakMap<object, { readonly value: unknown } | undefined>();
  readonly #own: RouteScript;

  constructor(script: Script, context: WorkerContext, chain: HttpChain) {
    const { clusters, memory, scripts } = context;
    const { config, module } = script;
    this.#script = scripts.module(module!);
    this.#config = config;
    this.#own = { config };
    this.#shared = {
      ...sharedByStreams(this.#script, statsPrefix(module!, chain), script, context),
      memory,
      findCluster: (name) => (clusters.find(name)?.current === undefined ? undefined : clusters.find(name)),
    };
  }

  create(stream: StreamControl, routeConfig: unknown): HttpFilter | undefined {
    if (this.#generation !== this.#script.generation) this.#update();
    const config = this.#configOf((routeConfig as RouteScript | undefined) ?? this.#own);
    if (this.#definition !== undefined && config !== undefined)
      return new ScriptFilter(this.#shared, this.#definition, stream, config.value);
    this.#shared.stats.increment(ScriptFilterStats.at.errors);
    return this.#shared.failsOpen ? undefined : new UnusableFilter(stream);
  }

  #update(): void {
    this.#generation = this.#script.generation;
    this.#configs = new WeakMap();
    try {
      this.#definition = this.#script.definition('http filter');
    } catch (error) {
      this.#definition = undefined;
      this.#shared.faults.report('loading', error, 'requests that need it fail');
    }
  }

  /** Returns the validated configuration; undefined if the module refuses it. */
  #configOf(route: RouteScript): { readonly value: unknown } | undefined {
    if (this.#configs.has(route)) return this.#configs.get(route);
    let config: { readonly value: unknown } | undefined;
    try {
      config = { value: configValue(this.#definition?.config, route.config ?? this.#config) };
    } catch (error) {
      this.#shared.faults.report('its config', error, 'requests that need it fail');
    }
    this.#configs.set(route, config);
    return config;
  }
}

/** The prefix of the stats of a module in a chain. */
export function statsPrefix(module: string, { statPrefix }: HttpChain): string {
  return `${statPrefix}script.${module}.`;
}
