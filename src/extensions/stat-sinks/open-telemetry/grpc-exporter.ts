// Exports by gRPC (OTLP/gRPC): MetricsService/Export, one call each.

import type { GrpcService } from '../../../config/generated/api.js';
import { type ClusterHosts, GrpcChannel } from '../../grpc-sdk.js';
import type { Exporter } from './exporter.js';

const METHOD = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
/** How long an answer may take, unless the service's timeout says otherwise. */
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
