// envoy.filters.http.on_demand: holds a request without virtual host until the management server has answered for its host, and one
// whose cluster does not exist until the server has answered for the cluster.

import type { OnDemand, OnDemandCds, OnDemandPerRouteConfig } from '../../../../config/generated/api.js';
import {
  type ClusterManager,
  type ClusterOutcome,
  type ClusterReference,
  type ClusterWaiter,
  HeadersStatus,
  type HostWaiter,
  type HttpFilter,
  type HttpFilterExtension,
  type HttpFilterFactory,
  type MissingClusters,
  type MissingHost,
  NO_LOCATORS,
  type OnDemandSource,
  obeyed,
  onDemandSource,
  RouteKind,
  refused,
  type StreamControl,
} from '../../../sdk.js';

const PACKAGE = 'envoy.extensions.filters.http.on_demand.v3';
const DEFAULT_TIMEOUT_MS = 5000;

export const onDemand: HttpFilterExtension<OnDemand> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.on_demand',
  typeUrls: [`type.googleapis.com/${PACKAGE}.OnDemand`, `type.googleapis.com/${PACKAGE}.PerRouteConfig`],
  implemented: {
    [`${PACKAGE}.OnDemand`]: obeyed('odcds'),
    [`${PACKAGE}.PerRouteConfig`]: obeyed('odcds'),
    [`${PACKAGE}.OnDemandCds`]: {
      source: true,
      resources_locator: refused(NO_LOCATORS),
      timeout: true,
    },
  },
  validate(config, report) {
    const { odcds } = config as OnDemand | OnDemandPerRouteConfig;
    if (odcds !== undefined && odcds.source === undefined)
      report('odcds', 'it needs source: where the clusters come from');
  },
  createOnWorker(config, { clusters, missingClusters }): HttpFilterFactory {
    const own = sourceOf(config.odcds);
    const context: FilterContext = { own, clusters, missing: missingClusters };
    return {
      // Created per request because the position in the chain matters: an earlier filter may answer before the server is asked.
      create(stream, routeConfig) {
        const source = routeConfig === undefined ? own : (routeConfig as RouteConfig).source;
        if (source === undefined && stream.missingHost() === undefined) return undefined;
        return new OnDemandFilter(stream, context, source);
      },
    };
  },
  /** The most specific configuration applies. One without odcds requests no clusters. */
  compileRouteConfig(configs): RouteConfig {
    return { source: sourceOf((configs.at(-1) as OnDemandPerRouteConfig).odcds) };
  },
};

interface FilterContext {
  /** The source of the filter itself. */
  readonly own: OnDemandSource | undefined;
  readonly clusters: ClusterManager;
  readonly missing: MissingClusters;
}

interface RouteConfig {
  readonly source: OnDemandSource | undefined;
}

function sourceOf(odcds: OnDemandCds | undefined): OnDemandSource | undefined {
  return odcds && onDemandSource(odcds.source, odcds.timeout, DEFAULT_TIMEOUT_MS);
}

/** The filter of one request. */
class OnDemandFilter implements HttpFilter, HostWaiter, ClusterWaiter {
  readonly #stream: StreamControl;
  readonly #context: FilterContext;
  /** Undefined: no clusters are requested. */
  #source: OnDemandSource | undefined;
  #awaitedHost: MissingHost | undefined;
  #awaitedCluster: string | undefined;

  constructor(stream: StreamControl, context: FilterContext, source: OnDemandSource | undefined) {
    this.#stream = stream;
    this.#context = context;
    this.#source = source;
  }

  decodeHeaders(): HeadersStatus {
    const host = this.#stream.missingHost();
    if (host !== undefined) {
      this.#awaitedHost = host;
      host.hosts.request(host.host, this);
    } else if (!this.#awaitsCluster()) return HeadersStatus.Continue;
    this.#stream.pauseRequest();
    return HeadersStatus.StopIteration;
  }

  hostSettled(): void {
    this.#awaitedHost = undefined;
    if (!this.#stream.chooseRouteAgain()) return this.#resume();
    // The request had no route when the filter was created.
    const config = this.#stream.routeConfig() as RouteConfig | undefined | null;
    this.#source = config === undefined ? this.#context.own : config?.source;
    if (this.#awaitsCluster()) return;
    this.#stream.continueDecoding();
    this.#resume();
  }

  clusterSettled(outcome: ClusterOutcome): void {
    const name = this.#awaitedCluster!;
    this.#awaitedCluster = undefined;
    // The route of a request that names its cluster in a header does not follow the name.
    const reference = outcome === 'available' ? this.#context.clusters.find(name) : undefined;
    if (reference !== undefined && this.#stream.route()?.cluster === undefined) this.#stream.setCluster(reference);
    this.#stream.continueDecoding();
    this.#resume();
  }

  onDestroy(): void {
    this.#awaitedHost?.hosts.cancel(this.#awaitedHost.host, this);
    this.#awaitedHost = undefined;
    if (this.#awaitedCluster !== undefined) this.#context.missing.cancel(this.#awaitedCluster, this);
    this.#awaitedCluster = undefined;
  }

  /** Requests the cluster of the route if it does not exist. Returns whether the request must wait for it. */
  #awaitsCluster(): boolean {
    const route = this.#stream.route();
    if (this.#source === undefined || route === undefined || route.kind !== RouteKind.Forward) return false;
    const { clusterName: name } = route;
    const reference = (route.cluster as ClusterReference | undefined) ?? this.#context.clusters.find(name);
    if (name === '' || reference?.current !== undefined) return false;
    this.#awaitedCluster = name;
    this.#context.missing.request(this.#source, name, this);
    return true;
  }

  /** The head has passed: resumed earlier, more body would be buffered behind it and might exceed the limit. */
  #resume(): void {
    this.#stream.resumeRequest();
  }
}
