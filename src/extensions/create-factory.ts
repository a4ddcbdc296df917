// Creates the factory of an HTTP filter on a worker. A createOnWorker() that is async or returns nothing is an error here, not
// per request.

import type { Any } from '../config/generated/api.js';
import type { HttpFilterFactory } from '../http/filters/filter.js';
import type { HttpChainContext, HttpFilterExtension, WorkerContext } from './factories.js';

/** Throws what createOnWorker() throws, and a TypeError if it returns no factory. */
export function createFactory(
  extension: HttpFilterExtension,
  config: Any,
  context: WorkerContext,
  chain: HttpChainContext,
): HttpFilterFactory {
  const factory = extension.createOnWorker(config, context, chain);
  if (typeof factory?.create === 'function') return factory;
  throw new TypeError(`createOnWorker() of '${extension.name}' returned no object with a create()`);
}
