// Exports over gRPC (OTLP/gRPC): one call of MetricsService/Export per export.

import type { GrpcService } from '../../../config/generated/api.js';
import { type ClusterHosts, GrpcChannel } from '../../grpc-sdk.js';
import type { Exporter } from './exporter.js';

const METHOD = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
/** Timeout of a call, unless the service configures one. */
const TIMEOUT_MS = 10_000;

export class GrpcExporter implements Exporter {
  readonly #channel: GrpcChannel;

  constructor(service: GrpcService, hosts: ClusterHosts) {
    this.#channel = new GrpcChannel(service, hosts);
  }

  async export(request: readonly Uint8Array[]): Promise<Uint8Array> {
    await this.#channel.ready();
    return this.#channel.unary(METHOD, Buffer.concat(request), TIMEOUT_MS);
  }

  close(): void {
    this.#channel.close();
  }
}
