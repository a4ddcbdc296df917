// Creates tracers: one for each configuration and worker, which all connection managers with that configuration share.

import { callExtension } from '../common/errors/defects.js';
import type { Any } from '../config/generated/api.js';
import type { Tracer } from '../http/tracing/tracer.js';
import type { ScopeRequest } from '../stats/store.js';
import type { ExtensionFinder, WorkerContext } from './factories.js';

interface SharedTracer {
  readonly tracer: Tracer;
  users: number;
}

/** The tracers of a worker, by configuration. */
const tracers = new WeakMap<WorkerContext, Map<string, SharedTracer>>();

/** Returns the tracer that `config` describes. Its close() must be called once. */
export function shareTracer(config: Any, context: WorkerContext): Tracer {
  const ofWorker = tracers.get(context) ?? new Map<string, SharedTracer>();
  tracers.set(context, ofWorker);
  const key = JSON.stringify(config);
  let shared = ofWorker.get(key);
  if (shared === undefined) {
    const extension = context.extensions.tracer(config);
    shared = { tracer: extension.createOnWorker(config, context), users: 0 };
    ofWorker.set(key, shared);
  }
  shared.users++;
  const { tracer } = shared;
  return {
    start: (request) => tracer.start(request),
    close() {
      if (--shared.users > 0) return;
      ofWorker.delete(key);
      tracer.close();
    },
  };
}

/** Returns the scopes of the tracer that `config` describes; undefined: of none. */
export function tracerScopes(config: Any | undefined, extensions: ExtensionFinder): ScopeRequest[] {
  if (config === undefined) return [];
  const extension = extensions.tracer(config);
  return callExtension('scopes', extension.name, () => extension.scopes?.(config) ?? []);
}
