// Creates the tracing of a connection manager from its configuration.

import { Random } from '../../../../common/random.js';
import { byteText } from '../../../../common/text/byte-text.js';
import type { HttpConnectionManager, HttpConnectionManager_Tracing } from '../../../../config/generated/api.js';
import { requestIdRules } from '../../../../http/headers/edge/request-id-rules.js';
import { RequestTracing } from '../../../../http/tracing/request-tracing.js';
import { Side } from '../../../../http/tracing/tracer.js';
import { Runtime } from '../../../../runtime/runtime.js';
import type { WorkerContext } from '../../../factories.js';
import { shareTracer } from '../../../share-tracer.js';

/** Returns undefined unless the connection manager traces. */
export function createTracing(
  { request_id_extension, tracing }: HttpConnectionManager,
  isOutbound: boolean,
  context: WorkerContext,
): RequestTracing | undefined {
  if (tracing === undefined) return undefined;
  const { defaultTracer, identity, random, runtime, transport } = context;
  const provider = tracing.provider?.typed_config ?? defaultTracer;
  const tracer = provider && shareTracer(provider, context);
  try {
    return new RequestTracing(tracing, {
      tracer,
      side: isOutbound ? Side.Egress : Side.Ingress,
      requestIds: requestIdRules(request_id_extension),
      runtime,
      random,
      node: byteText(identity.node),
      zone: byteText(identity.zone),
      failed: (error) => transport.report(error, 'a tracer failed'),
    });
  } catch (error) {
    tracer?.close();
    throw error;
  }
}

/** Throws the mistakes of custom tags and formats. */
export function checkTracing(config: HttpConnectionManager_Tracing): void {
  new RequestTracing(config, {
    tracer: undefined,
    side: Side.Ingress,
    requestIds: requestIdRules(undefined),
    runtime: new Runtime(),
    random: new Random(0),
    node: '',
    zone: '',
    failed: () => {},
  });
}
