// An HTTP filter whose configuration is discovered (ECDS). Each new stream uses the current configuration.

import { ResponseFlag } from '../../../../access-log/stream/response-flags.js';
import { withSourcePlace } from '../../../../common/errors/defects.js';
import { BatonError, messageOf } from '../../../../common/errors/errors.js';
import { shownName } from '../../../../common/text/shown.js';
import type { Any, HttpFilter as HttpFilterConfig } from '../../../../config/generated/api.js';
import {
  HeadersStatus,
  type HttpFilter,
  type HttpFilterFactory,
  type StreamControl,
} from '../../../../http/filters/filter.js';
import { getLogger } from '../../../../log/logger.js';
import { createFactory } from '../../../create-factory.js';
import { discoveredExtension } from '../../../discovered-filters.js';
import type {
  DiscoveredFilterConfig,
  HttpChainContext,
  HttpFilterExtension,
  WorkerContext,
} from '../../../factories.js';

const logger = getLogger('filter');

/** A route's configuration for a discovered filter, whose kind may change. */
export interface DiscoveredRouteConfig {
  readonly extension: HttpFilterExtension;
  /** Compiled by that extension. */
  readonly config: unknown;
}

interface BuiltFilter {
  readonly extension: HttpFilterExtension;
  readonly factory: HttpFilterFactory;
}

export class DiscoveredFilter implements HttpFilterFactory, DiscoveredFilterConfig {
  readonly #config: HttpFilterConfig;
  readonly #context: WorkerContext;
  readonly #chain: HttpChainContext;
  readonly #default: BuiltFilter | undefined;
  #built: BuiltFilter | undefined;
  #isClosed = false;

  constructor(config: HttpFilterConfig, context: WorkerContext, chain: HttpChainContext) {
    this.#config = config;
    this.#context = context;
    this.#chain = chain;
    const { default_config: defaultConfig } = config.config_discovery!;
    this.#default = defaultConfig && this.#build(defaultConfig);
    context.filterConfigs.follow(config, this);
  }

  update(config: Any | undefined): void {
    if (this.#isClosed) return;
    const former = this.#built;
    try {
      this.#built = config === undefined ? this.#default : this.#build(config);
    } catch (error) {
      // The primary has checked it only for the other chains that use it. This filter keeps the previous configuration.
      this.#built ??= this.#default;
      const why = error instanceof BatonError ? messageOf(error) : withSourcePlace(error);
      logger.error(`the configuration of the filter '${shownName(this.#config.name ?? '')}' cannot be used: ${why}`);
      return;
    }
    if (former !== this.#default) this.#close(former);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#built !== this.#default) this.#close(this.#built);
    this.#close(this.#default);
  }

  create(stream: StreamControl, routeConfig: unknown): HttpFilter | undefined {
    if (this.#built === undefined) return new UnconfiguredFilter(stream);
    const { extension, factory } = this.#built;
    const given = routeConfig as DiscoveredRouteConfig | undefined;
    return factory.create(stream, given?.extension === extension ? given.config : undefined);
  }

  /** Closes a replaced filter. Reports what it throws. */
  #close(built: BuiltFilter | undefined): void {
    try {
      built?.factory.close?.();
    } catch (error) {
      this.#context.transport.report(error, 'close() of a filter failed');
    }
  }

  #build(config: Any): BuiltFilter {
    const { name = '', config_discovery: discovery } = this.#config;
    const extension = discoveredExtension(name, config, discovery!, this.#context.extensions);
    return { extension, factory: createFactory(extension, config, this.#context, this.#chain) };
  }
}

/** Refuses all requests while the filter has no configuration: it may be one that controls access. */
class UnconfiguredFilter implements HttpFilter {
  readonly #stream: StreamControl;

  constructor(stream: StreamControl) {
    this.#stream = stream;
  }

  decodeHeaders(): HeadersStatus {
    this.#stream.sendLocalReply({
      status: 500,
      body: '',
      details: 'no_filter_config_found',
      flags: ResponseFlag.NoFilterConfigFound,
    });
    return HeadersStatus.StopIteration;
  }
}
