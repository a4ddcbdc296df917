// What an HTTP filter's extension builds on a worker. An author who makes it async, or forgets to return it, is told so, and not by each request.

import type { Any } from '../../../../config/generated/api.js';
import type { HttpFilterFactory } from '../../../../http/filters/filter.js';
import type { HttpChainContext, HttpFilterExtension, WorkerContext } from '../../../factories.js';

/** Throws what createOnWorker() throws, and when it returns no factory. */
export function createFactory(
  extension: HttpFilterExtension,
  config: Any,
  context: WorkerContext,
  chain: HttpChainContext,
): HttpFilterFactory {
  const factory = extension.createOnWorker(config, context, chain);
  if (typeof factory?.create === 'function') return factory;
  throw new TypeError(`createOnWorker() of '${extension.name}' has returned nothing with a create()`);
}
