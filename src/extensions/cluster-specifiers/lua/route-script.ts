// A script of a cluster specifier on this thread: its VM, and its function envoy_on_route.

import { MEMORY_BYTES, RUN_MS } from '../../filters/http/lua/script.js';
import { createLuaVm, type LuaVm, NO_FUNCTION } from '../../sdk.js';
import { ROUTE_API } from './objects.js';

export interface RouteScript {
  readonly vm: LuaVm;
  /** A reference to a function that calls envoy_on_route(handle) and gives its last value to a RouteResult. */
  readonly onRoute: number;
}

/** As in Envoy, the last of several values counts. */
const WRAPPER = `
local on_route = envoy_on_route
local function take(result, ...)
  local count = select('#', ...)
  if count > 0 then result:set((select(count, ...))) end
end
envoy_on_route = function(handle, result) take(result, on_route(handle)) end
`;

/**
 * Compiles and runs a script, which defines envoy_on_route. `code`: one character per byte.
 * @throws Error with the script's line
 */
export function loadRouteScript(code: string): RouteScript {
  const vm = createLuaVm(MEMORY_BYTES, RUN_MS);
  try {
    for (const methods of ROUTE_API) vm.define(methods);
    vm.run(code, code);
    if (vm.functionOf('envoy_on_route') === NO_FUNCTION)
      throw new Error('envoy_on_route() function not found. Lua will not hook cluster specifier.');
    vm.run(WRAPPER, '=baton');
    return { vm, onRoute: vm.functionOf('envoy_on_route') };
  } catch (error) {
    vm.close();
    throw error;
  }
}
