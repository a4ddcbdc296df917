// Tracing of a connection manager (HttpConnectionManager.tracing) on one worker: begins the trace of each request.

import { noHeaderNeeds } from '../../access-log/formats/format.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { Random } from '../../common/random.js';
import { headerKey } from '../../common/text/header-names.js';
import type { HttpConnectionManager_Tracing } from '../../config/generated/api.js';
import type { Runtime } from '../../runtime/runtime.js';
import type { RequestIdRules } from '../headers/edge/request-id-rules.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { type CompiledTag, compileCustomTags, mergeTags } from './custom-tags.js';
import { RequestTrace, type TraceRules } from './request-trace.js';
import { compileNames, type RouteTracing, type SpanNameFormats } from './route-tracing.js';
import { compileFractions, decide, type SamplingFractions } from './sampling.js';
import { TraceReason } from './trace-reason.js';
import { Side, type Span, type Tracer } from './tracer.js';

const HOST = headerKey('host');
const DEFAULT_PATH_LENGTH = 256;

export interface TracingEnvironment {
  /** Undefined: requests are sampled, but have no spans. */
  readonly tracer: Tracer | undefined;
  readonly side: Side;
  readonly requestIds: RequestIdRules;
  readonly runtime: Runtime;
  readonly random: Random;
  /** --service-node and --service-zone; one character per byte. */
  readonly node: string;
  readonly zone: string;
  /** See TraceRules. Also called with what the tracer's close() has thrown. */
  failed(error: unknown): void;
}

export class RequestTracing implements TraceRules {
  readonly side: Side;
  readonly spawnsTries: boolean;
  readonly propagates: boolean;
  readonly isVerbose: boolean;
  readonly maxPathLength: number;
  /** What the formats read. */
  readonly needs: HeaderNeeds = noHeaderNeeds();
  readonly #tracer: Tracer | undefined;
  readonly #fractions: SamplingFractions;
  readonly #tags: readonly CompiledTag[];
  readonly #names: SpanNameFormats;
  readonly #requestIds: RequestIdRules;
  readonly #random: Random;
  readonly #node: string;
  readonly #zone: string;
  readonly #failed: (error: unknown) => void;
  /** Tags of routes, with those of the connection manager that they do not replace. */
  readonly #merged = new WeakMap<RouteTracing, readonly CompiledTag[]>();

  /** Throws a BatonError, or Mistakes, for invalid tags or formats. */
  constructor(config: HttpConnectionManager_Tracing, environment: TracingEnvironment) {
    this.#tracer = environment.tracer;
    this.side = environment.side;
    this.spawnsTries = config.spawn_upstream_span ?? false;
    this.propagates = !(config.no_context_propagation ?? false);
    this.isVerbose = config.verbose ?? false;
    this.maxPathLength = config.max_path_tag_length ?? DEFAULT_PATH_LENGTH;
    this.#fractions = compileFractions(config, environment.runtime);
    this.#tags = mergeTags(compileCustomTags(config.custom_tags, this.needs, 'tracing.custom_tags'), []);
    this.#names = compileNames(config, this.needs, 'tracing');
    this.#requestIds = environment.requestIds;
    this.#random = environment.random;
    this.#node = environment.node;
    this.#zone = environment.zone;
    this.#failed = environment.failed;
  }

  /** Decides about a request whose route is known, and begins its span. Returns undefined without a tracer. */
  begin(headers: HeaderBlock, info: StreamInfo, route: RouteTracing | undefined): RequestTrace | undefined {
    const reason = decide(headers, route?.fractions ?? this.#fractions, this.#requestIds, this.#random);
    info.traceReason = reason;
    if (this.#tracer === undefined) return undefined;
    const trace = new RequestTrace(this, this.#start(this.#tracer, headers, info, reason), route);
    info.span = trace.span;
    trace.begin(headers);
    return trace;
  }

  tagsFor(route: RouteTracing | undefined): readonly CompiledTag[] {
    if (route === undefined || route.tags.length === 0) return this.#tags;
    let tags = this.#merged.get(route);
    if (tags === undefined) this.#merged.set(route, (tags = mergeTags(route.tags, this.#tags)));
    return tags;
  }

  namesFor(route: RouteTracing | undefined): SpanNameFormats {
    if (route === undefined) return this.#names;
    return {
      request: route.names.request ?? this.#names.request,
      tries: route.names.tries ?? this.#names.tries,
    };
  }

  failed(error: unknown): void {
    this.#failed(error);
  }

  close(): void {
    try {
      this.#tracer?.close();
    } catch (error) {
      this.#failed(error);
    }
  }

  #start(tracer: Tracer, headers: HeaderBlock, info: StreamInfo, reason: TraceReason): Span {
    const isTraced = reason !== TraceReason.NotTraceable;
    const name = this.side === Side.Ingress ? 'ingress' : `egress ${headers.get(HOST) ?? ''}`;
    const { side, spawnsTries } = this;
    const span = tracer.start({ headers, name, side, spawnsTries, isTraced, startMs: info.startRealtimeMs });
    if (span.isSampled) {
      span.setTag('node_id', this.#node);
      span.setTag('zone', this.#zone);
    }
    return span;
  }
}
