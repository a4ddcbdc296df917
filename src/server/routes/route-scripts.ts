// The configurations that routes give to modules of scripts: what the modules refuse.

import { scriptsOfRoutes } from '../../config/fields/scripts.js';
import type { RouteConfiguration } from '../../config/generated/api.js';
import { formatPath } from '../../config/text/path.js';
import type { RouteFilters } from '../../extensions/factories.js';

/** Virtual hosts per step: some milliseconds of work. */
const HOSTS_PER_STEP = 64;

export interface RouteScripts {
  /** Returns why the module refuses the configuration; undefined if it accepts it, or has not been asked. */
  refusal(module: string, config: unknown): string | undefined;
  /** Returns the modules of the discovered filters with that name. */
  discovered(filter: string): Iterable<string>;
}

/** Calls `report` with what the modules of the chains refuse. */
export function* routeScriptProblems(
  config: RouteConfiguration,
  chains: Iterable<RouteFilters>,
  scripts: RouteScripts,
  report: (problem: string) => void,
): Generator<void, void> {
  const seen = new Set<string>();
  for (const { scripts: filters = [] } of chains) {
    for (const [filter, own] of filters) {
      const modules = own === undefined ? [...new Set(scripts.discovered(filter))] : [own];
      const key = JSON.stringify([filter, modules]);
      if (modules.length === 0 || seen.has(key)) continue;
      seen.add(key);
      yield* problemsOf(config, filter, modules, scripts, report);
    }
  }
}

/** `modules`: one of them must accept the configurations for the filter. */
function* problemsOf(
  config: RouteConfiguration,
  filter: string,
  modules: readonly string[],
  scripts: RouteScripts,
  report: (problem: string) => void,
): Generator<void, void> {
  const { virtual_hosts: hosts = [], ...rest } = config;
  const check = (part: unknown, at: readonly (string | number)[]) => {
    for (const { config: own, path } of scriptsOfRoutes(part, new Map([[filter, modules[0]!]]), at)) {
      const refusals = modules.map((module) => scripts.refusal(module, own));
      if (refusals.every((refusal) => refusal !== undefined)) report(`${formatPath(path)}: ${refusals[0]}`);
    }
  };
  check(rest, []);
  for (const [index, host] of hosts.entries()) {
    check(host, ['virtual_hosts', index]);
    if (index % HOSTS_PER_STEP === HOSTS_PER_STEP - 1) yield;
  }
}
