// The SkyWalking tracer of one worker.

import { randomUUID } from 'node:crypto';
import type { GrpcService, SkyWalkingConfig } from '../../../config/generated/api.js';
import { byteText, type Span, type TracedRequest, type Tracer, type WorkerContext } from '../../sdk.js';
import { NO_SPAN } from '../common/no-span.js';
import { Segment, type SegmentSink } from './segment.js';
import { SegmentStream } from './segment-stream.js';
import { SkyWalkingStats, STATS_PREFIX } from './stats.js';
import { readSw8 } from './sw8.js';

const DEFAULT_NAME = 'EnvoyProxy';
const DEFAULT_MAX_SEGMENTS = 1024;
const NO_PARENT = -1;

export class SkyWalkingTracer implements Tracer, SegmentSink {
  readonly service: string;
  readonly instance: string;
  readonly #stream: SegmentStream;

  constructor(config: SkyWalkingConfig, { calls, identity, scope, timers }: WorkerContext) {
    const { client_config: client = {} } = config;
    const stats = scope(STATS_PREFIX, SkyWalkingStats);
    const { at } = SkyWalkingStats;
    this.service = byteText(client.service_name || identity.cluster || DEFAULT_NAME);
    this.instance = byteText(client.instance_name || identity.node || DEFAULT_NAME);
    const maxSegments = client.max_cache_size ?? DEFAULT_MAX_SEGMENTS;
    this.#stream = new SegmentStream(
      withToken(config.grpc_service!, client.backend_token),
      maxSegments,
      calls,
      timers,
      {
        sent: () => stats.increment(at.segments_sent),
        dropped: (segments) => stats.add(at.segments_dropped, segments),
        flushed: (segments) => {
          stats.increment(at.cache_flushed);
          stats.add(at.segments_flushed, segments);
        },
      },
    );
  }

  /** As in Envoy, requests whose caller traces are always reported. */
  start({ headers, isTraced, startMs }: TracedRequest): Span {
    const caller = readSw8(headers);
    if (caller === undefined && !isTraced) return NO_SPAN;
    const path = headers.pathText();
    return new Segment(this, caller?.traceId ?? randomUUID(), randomUUID(), path, caller).open(NO_PARENT, startMs);
  }

  report(segment: Uint8Array): void {
    this.#stream.add(segment);
  }

  close(): void {
    this.#stream.close();
  }
}

function withToken(service: GrpcService, token: string | undefined): GrpcService {
  if (!token) return service;
  // '%' begins an operator in metadata.
  const header = { key: 'authentication', value: token.replaceAll('%', '%%') };
  return { ...service, initial_metadata: [...(service.initial_metadata ?? []), header] };
}
