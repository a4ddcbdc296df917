// envoy.filters.http.lua: runs scripts in Lua for requests and responses.

import type { Any, DataSource, LuaLua as Lua, LuaPerRoute } from '../../../../config/generated/api.js';
import {
  type HttpChain,
  type HttpChainContext,
  type HttpFilter,
  type HttpFilterExtension,
  type HttpFilterFactory,
  messageOf,
  obeyed,
  type Report,
  readDataSource,
  refused,
  type StreamControl,
  unpack,
  type WorkerContext,
} from '../../../sdk.js';
import { type LuaChainContext, LuaFilter } from './lua-filter.js';
import { LuaStatsObject } from './objects/stats-objects.js';
import { LuaScript, tryToLoad, type VmSettings } from './script.js';
import { LuaStats } from './stats.js';
import { UnloadedScript } from './unloaded-script.js';
import type { JsonStruct } from './values.js';

const LUA = 'envoy.extensions.filters.http.lua.v3.Lua';
const PER_ROUTE = 'envoy.extensions.filters.http.lua.v3.LuaPerRoute';

const NO_NATIVE_MODULES = refused('modules in native code are not loaded: use modules in Lua with package_paths');

export const lua: HttpFilterExtension<Lua> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.lua',
  runsUpstream: true,
  typeUrls: [`type.googleapis.com/${LUA}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    [LUA]: {
      ...obeyed('inline_code', 'source_codes', 'default_source_code', 'stat_prefix', 'clear_route_cache'),
      ...obeyed('filter_context', 'package_paths', 'shared_vm_id'),
      package_cpaths: NO_NATIVE_MODULES,
    },
    [PER_ROUTE]: {
      ...obeyed('disabled', 'name', 'source_code', 'filter_context', 'package_paths', 'shared_vm_id'),
      package_cpaths: NO_NATIVE_MODULES,
    },
  },
  validate(config, report) {
    const route = unpack(config as unknown as Any, PER_ROUTE);
    if (route !== undefined) return checkSource(route.source_code, settingsOf(route), 'source_code', report);
    const own = config as Lua;
    const settings = settingsOf(own);
    if (own.inline_code !== undefined && own.default_source_code !== undefined)
      report('default_source_code', 'Error: Only one of `inline_code` or `default_source_code` can be set.');
    if (own.inline_code !== undefined) checkCode(bytesOf(own.inline_code), settings, 'inline_code', report);
    checkSource(own.default_source_code, settings, 'default_source_code', report);
    for (const [name, source] of Object.entries(own.source_codes ?? {}))
      checkSource(source, settings, `source_codes[${JSON.stringify(name)}]`, report);
  },
  scopes: (config, chain) => [{ prefix: prefixOf(config, chain), layout: LuaStats }],
  createOnWorker: (config, context, chain) => new LuaChain(config, context, chain),
  /** The most specific configuration applies. */
  compileRouteConfig(configs, where): RouteScript | undefined {
    const config = configs.at(-1) as LuaPerRoute | undefined;
    if (config === undefined) return undefined;
    return {
      isDisabled: config.disabled === true,
      name: config.name,
      script: config.source_code && scriptOf(config.source_code, settingsOf(config), `${where}.source_code`),
      filterContext: config.filter_context as JsonStruct | undefined,
    };
  },
};

interface RouteScript {
  readonly isDisabled: boolean;
  /** A key of source_codes. */
  readonly name: string | undefined;
  readonly script: LuaScript | undefined;
  readonly filterContext: JsonStruct | undefined;
}

class LuaChain implements HttpFilterFactory {
  readonly #context: LuaChainContext;
  readonly #default: LuaScript | undefined;
  readonly #named = new Map<string, LuaScript>();
  readonly #filterContext: JsonStruct | undefined;

  constructor(config: Lua, context: WorkerContext, chain: HttpChainContext) {
    const { calls, clock, clusters, memory, stats } = context;
    const prefix = prefixOf(config, chain);
    this.#context = {
      ...{ calls, clock, clusters, memory },
      stats: new LuaStatsObject(stats, prefix),
      filterStats: context.scope(prefix, LuaStats),
      clearsRouteCache: config.clear_route_cache ?? true,
      filterName: chain.filterName,
    };
    const settings = settingsOf(config);
    if (config.inline_code !== undefined) this.#default = new LuaScript(bytesOf(config.inline_code), settings);
    else if (config.default_source_code !== undefined)
      this.#default = scriptOf(config.default_source_code, settings, 'default_source_code');
    for (const [name, source] of Object.entries(config.source_codes ?? {}))
      this.#named.set(name, scriptOf(source, settings, `source_codes[${JSON.stringify(name)}]`));
    this.#filterContext = config.filter_context as JsonStruct | undefined;
  }

  create(stream: StreamControl, routeConfig: unknown): HttpFilter | undefined {
    const route = routeConfig as RouteScript | undefined;
    const script = this.#scriptFor(route);
    if (script === undefined) return undefined;
    const context = this.#context;
    const loaded = script.loaded(context.clock.monotonicMs);
    if (loaded === undefined) return new UnloadedScript(stream, context.filterStats);
    return new LuaFilter(context, stream, loaded, route?.filterContext ?? this.#filterContext);
  }

  /** Undefined: none runs. */
  #scriptFor(route: RouteScript | undefined): LuaScript | undefined {
    if (route === undefined) return this.#default;
    if (route.isDisabled) return undefined;
    if (route.name !== undefined) return this.#named.get(route.name);
    return route.script ?? this.#default;
  }
}

function prefixOf({ stat_prefix: own = '' }: Lua, { statPrefix }: HttpChain): string {
  return own === '' ? `${statPrefix}lua.` : `${statPrefix}lua.${own}.`;
}

function settingsOf({ package_paths, shared_vm_id }: Lua | LuaPerRoute): VmSettings {
  return { paths: package_paths ?? [], sharedId: shared_vm_id ?? '' };
}

function scriptOf(source: DataSource, settings: VmSettings, where: string): LuaScript {
  return new LuaScript(readDataSource(source, where).toString('latin1'), settings);
}

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function checkSource(source: DataSource | undefined, settings: VmSettings, path: string, report: Report): void {
  if (source === undefined) return;
  let code: string;
  try {
    code = readDataSource(source).toString('latin1');
  } catch (error) {
    return report(path, messageOf(error));
  }
  checkCode(code, settings, path, report);
}

/** Runs the script as workers will: as in Envoy, one that fails is refused. */
function checkCode(code: string, { paths }: VmSettings, path: string, report: Report): void {
  try {
    tryToLoad(code, { paths });
  } catch (error) {
    report(path, `script load error: ${messageOf(error)}`);
  }
}
