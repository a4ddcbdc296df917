// --route-tests: checks where requests would go, without sockets.

import type { Bootstrap } from '../../config/generated/api.js';
import type { Problem } from '../../config/text/problem.js';
import type { DynamicOptions } from '../../xds/reading/settings.js';
import { readRouteTests } from './read-route-tests.js';
import { routeConfigurations } from './route-configurations.js';
import { type RouteTestResult, runRouteTest } from './run-route-test.js';

export type { RouteTestResult } from './run-route-test.js';

/** Runs the tests of a file on the routes of a valid bootstrap; or returns what is wrong with the file. */
export function runRouteTests(
  path: string,
  bootstrap: Bootstrap,
  options: DynamicOptions,
): { readonly results: readonly RouteTestResult[] } | { readonly problems: readonly Problem[] } {
  const read = readRouteTests(path);
  if ('problems' in read) return read;
  const candidates = routeConfigurations(bootstrap, options);
  return { results: read.tests.map((test) => runRouteTest(test, candidates)) };
}
