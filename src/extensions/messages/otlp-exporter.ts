// Exports encoded requests to an OpenTelemetry collector (OTLP), over gRPC or HTTP, from any thread.

import type { GrpcService, HttpService as HttpServiceConfig } from '../../config/generated/api.js';
import { GrpcChannel } from '../grpc-sdk.js';
import { type CallingThread, HttpService } from '../sdk.js';

/** For services without a timeout: a call that is never answered must end. */
const TIMEOUT_MS = 10_000;

export interface OtlpExporter {
  /** The collector's place in the log, for example `in cluster 'otel'`. */
  readonly place: string;
  /** Calls `done` once: with '', or with the reason of a failure. It may be called before this returns. */
  export(request: Uint8Array, done: (failure: string) => void): void;
  /** Called when no export follows. Those in flight go on. */
  close(): void;
}

/** `method`: the path of the gRPC method. One of the services is set. */
export function createOtlpExporter(
  services: { readonly grpc_service?: GrpcService | undefined; readonly http_service?: HttpServiceConfig | undefined },
  method: string,
  calls: CallingThread,
): OtlpExporter {
  const { grpc_service: byGrpc, http_service: byHttp } = services;
  if (byHttp !== undefined) return new HttpExporter(byHttp, calls);
  return new GrpcExporter(byGrpc!, method, calls);
}

class GrpcExporter implements OtlpExporter {
  readonly place: string;
  readonly #channel: GrpcChannel;
  readonly #method: string;

  constructor(service: GrpcService, method: string, calls: CallingThread) {
    this.#channel = new GrpcChannel(service, calls);
    this.#method = method;
    this.place = `in cluster '${service.envoy_grpc?.cluster_name}'`;
  }

  export(request: Uint8Array, done: (failure: string) => void): void {
    this.#channel.unary(this.#method, request, TIMEOUT_MS, {
      onAnswer: () => done(''),
      onFailure: ({ code, details }) => done(`${code}, ${details}`),
    });
  }

  close(): void {
    this.#channel.close();
  }
}

class HttpExporter implements OtlpExporter {
  readonly place: string;
  readonly #service: HttpService;

  constructor(config: HttpServiceConfig, calls: CallingThread) {
    this.#service = new HttpService(config, calls);
    this.place = `in cluster '${config.http_uri?.cluster}'`;
  }

  export(request: Uint8Array, done: (failure: string) => void): void {
    this.#service.post('application/x-protobuf', [request], {
      onAnswer: ({ status }) => done(status >= 200 && status < 300 ? '' : `it has answered with status ${status}`),
      onFailure: done,
    });
  }

  close(): void {}
}
