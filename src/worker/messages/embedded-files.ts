// Files that routes answer with, read on the primary when routes are packed: so all workers answer alike, and one that begins
// later needs no file that may have changed or gone since.

import { readRegularFile } from '../../common/files/regular-file.js';
import type { Route, VirtualHost } from '../../config/generated/api.js';

/** `host` with what its files hold in their place. */
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
    // It was there when the configuration was checked. Workers try again, and tell what is wrong.
    return route;
  }
}
