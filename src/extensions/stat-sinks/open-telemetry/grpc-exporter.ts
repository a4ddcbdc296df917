// Exports over gRPC (OTLP/gRPC): one call of MetricsService/Export per export.

import type { GrpcService } from '../../../config/generated/api.js';
import { GrpcChannel } from '../../grpc-sdk.js';
import type { CallingThread, RunningCall } from '../../sdk.js';
import type { Exporter } from './exporter.js';

const METHOD = '/opentelemetry.proto.collector.metrics.v1.MetricsService/Export';
/** Timeout of a call, unless the service configures one. */
const TIMEOUT_MS = 10_000;

export class GrpcExporter implements Exporter {
  readonly #channel: GrpcChannel;
  /** Calls in flight. */
  readonly #calls = new Set<RunningCall>();

  constructor(service: GrpcService, calls: CallingThread) {
    this.#channel = new GrpcChannel(service, calls);
  }

  export(request: readonly Uint8Array[]): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      // The call may fail before it is returned.
      let call: RunningCall | undefined;
      call = this.#channel.unary(METHOD, Buffer.concat(request), TIMEOUT_MS, {
        onAnswer: (message) => {
          if (call !== undefined) this.#calls.delete(call);
          resolve(message);
        },
        onFailure: ({ code, details }) => {
          if (call !== undefined) this.#calls.delete(call);
          reject(new Error(`${code}, ${details}`));
        },
      });
      if (call !== undefined) this.#calls.add(call);
    });
  }

  close(): void {
    for (const call of this.#calls) call.cancel();
    this.#calls.clear();
    this.#channel.close();
  }
}
