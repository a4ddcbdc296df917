// Embeds files with response bodies into routes. The primary reads them when it packs routes, so that all workers respond alike,
// and a later worker does not depend on a file that may have changed or been removed.

import { readRegularFile } from '../../common/files/regular-file.js';
import type { Route, VirtualHost } from '../../config/generated/api.js';

/** Returns `host` with the contents of its files in their place. */
export function withEmbeddedFiles(host: VirtualHost): VirtualHost {
  if (host.routes?.some(hasFile) !== true) return host;
  return { ...host, routes: host.routes.map((route) => (hasFile(route) ? withEmbeddedFile(route) : route)) };
}

function hasFile({ direct_response: answer }: Route): boolean {
  return answer?.body?.filename !== undefined;
}

function withEmbeddedFile(route: Route): Route {
  const answer = route.direct_response!;
  try {
    const inline_bytes = readRegularFile(answer.body!.filename!).toString('base64');
    return { ...route, direct_response: { ...answer, body: { inline_bytes } } };
  } catch {
    // It existed when the configuration was checked. Workers retry, and report the error.
    return route;
  }
}
