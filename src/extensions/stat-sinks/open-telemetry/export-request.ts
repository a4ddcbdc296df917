// Builds an ExportMetricsServiceRequest. Metrics are encoded in steps as they are added, so that finish() has little to do.

import protobuf from 'protobufjs/minimal.js';

/**
 * Field tags: ExportMetricsServiceRequest.resource_metrics, ResourceMetrics.resource and .scope_metrics, ScopeMetrics.metrics.
 */
const RESOURCE_METRICS_TAG = 10;
const RESOURCE_TAG = 10;
const SCOPE_METRICS_TAG = 18;
const METRICS_TAG = 18;

export class ExportRequest {
  readonly #metric: protobuf.Type;
  readonly #resource: Uint8Array;
  #writer = protobuf.Writer.create();
  readonly #pieces: Uint8Array[] = [];
  #sealedBytes = 0;
  #count = 0;

  /** `metric` is opentelemetry.proto.metrics.v1.Metric, `resource` an encoded opentelemetry.proto.resource.v1.Resource. */
  constructor(metric: protobuf.Type, resource: Uint8Array) {
    this.#metric = metric;
    this.#resource = resource;
  }

  /** Number of added metrics. */
  get count(): number {
    return this.#count;
  }

  /** Adds a metric given as plain data. */
  add(metric: object): void {
    this.#metric.encode(metric, this.#writer.uint32(METRICS_TAG).fork()).ldelim();
    this.#count++;
  }

  /** Encodes the metrics added since the last call. Called every few hundred metrics. */
  seal(): void {
    if (this.#writer.len === 0) return;
    const piece = this.#writer.finish();
    this.#pieces.push(piece);
    this.#sealedBytes += piece.length;
    this.#writer = protobuf.Writer.create();
  }

  /** Returns the message as a list of pieces. Nothing may be added afterwards. */
  finish(): readonly Uint8Array[] {
    this.seal();
    const resource = protobuf.Writer.create().uint32(RESOURCE_TAG).bytes(this.#resource).finish();
    const scope = protobuf.Writer.create().uint32(SCOPE_METRICS_TAG).uint32(this.#sealedBytes).finish();
    const length = resource.length + scope.length + this.#sealedBytes;
    const head = protobuf.Writer.create().uint32(RESOURCE_METRICS_TAG).uint32(length).finish();
    return [Buffer.concat([head, resource, scope]), ...this.#pieces];
  }
}
