// Configuration from management servers over gRPC: the aggregated stream, which subscriptions share, and single streams.

import { BatonError } from '../../common/errors/errors.js';
import type { Subscription, SubscriptionRequest } from '../subscription.js';
import type { GrpcSourcesContext } from './grpc-sources-context.js';
import { Mux } from './mux.js';

export class GrpcSources {
  readonly #context: GrpcSourcesContext;
  readonly #muxes = new Set<Mux>();
  #aggregated: Mux | undefined;

  constructor(context: GrpcSourcesContext) {
    this.#context = context;
  }

  /** Subscribes to a source with api_config_source (GRPC, DELTA_GRPC) or ads. The watcher is never called before this returns. */
  subscribe(request: SubscriptionRequest): Subscription {
    const { api_config_source: api } = request.source;
    if (api === undefined) return this.#ads().subscribe(request);
    const mux = new Mux(request.type, api, request.statPrefix, this.#context);
    this.#muxes.add(mux);
    const close = () => {
      mux.close();
      this.#muxes.delete(mux);
    };
    try {
      const { setNames } = mux.subscribe(request);
      return { setNames, close };
    } catch (error) {
      close();
      throw error;
    }
  }

  /** Ends all streams. */
  close(): void {
    for (const mux of this.#muxes) mux.close();
    this.#muxes.clear();
  }

  #ads(): Mux {
    if (this.#aggregated !== undefined) return this.#aggregated;
    const { adsConfig } = this.#context;
    if (adsConfig === undefined) {
      throw new BatonError('INTERNAL', 'a config source uses ads, but there is no ads_config');
    }
    this.#aggregated = new Mux('all', adsConfig, '', this.#context);
    this.#muxes.add(this.#aggregated);
    return this.#aggregated;
  }
}
