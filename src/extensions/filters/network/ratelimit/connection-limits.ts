// The compiled configuration of the network filter ratelimit, one per filter chain and worker.

import type {
  NetworkRatelimitRateLimit as FilterConfig,
  RateLimitDescriptor,
} from '../../../../config/generated/api.js';
import {
  BatonError,
  buildEach,
  byteText,
  compileFormat,
  defineLayout,
  type FilteredClient,
  type Format,
  messageOf,
  type RuntimeFraction,
  type Scope,
  StreamInfo,
  type WorkerContext,
} from '../../../sdk.js';
import { LimitService, type Question } from '../../common/rate-limit/limit-service.js';

export const ConnectionLimitStats = defineLayout({
  total: 'counter',
  ok: 'counter',
  over_limit: 'counter',
  error: 'counter',
  failure_mode_allowed: 'counter',
  cx_closed: 'counter',
  active: 'gauge',
});

const ALL = { numerator: 100 };

export class ConnectionLimits {
  readonly service: LimitService;
  readonly stats: Scope;
  readonly deniesOnError: boolean;
  readonly #domain: string;
  readonly #descriptors: readonly CompiledDescriptor[];
  readonly #enabled: RuntimeFraction;
  readonly #enforced: RuntimeFraction;
  readonly #random: WorkerContext['random'];

  constructor(config: FilterConfig, { calls, random, runtime }: WorkerContext, stats: Scope) {
    this.service = new LimitService(config.rate_limit_service!, config.timeout, calls);
    this.stats = stats;
    this.deniesOnError = config.failure_mode_deny ?? false;
    this.#domain = byteText(config.domain!);
    this.#descriptors = compileDescriptors(config.descriptors);
    this.#enabled = runtime.fraction('ratelimit.tcp_filter_enabled', ALL);
    this.#enforced = runtime.fraction('ratelimit.tcp_filter_enforcing', ALL);
    this.#random = random;
  }

  /** Returns whether the service is asked about a new connection. */
  applies(): boolean {
    return this.#enabled.isHit(this.#random);
  }

  /** Returns whether a connection beyond its limit is closed. */
  enforces(): boolean {
    return this.#enforced.isHit(this.#random);
  }

  questionFor(client: FilteredClient): Question {
    const info = new StreamInfo();
    info.downstream = client;
    info.connectionId = client.serial;
    const descriptors = this.#descriptors.map((parts) => ({
      entries: parts.flatMap(({ key, value }) => [key, value.text(info)]),
      limit: undefined,
      hits: undefined,
      areHitsNegative: false,
      headers: 'UNSPECIFIED' as const,
    }));
    return { domain: this.#domain, descriptors, hits: 0 };
  }
}

/** The entries of a descriptor. Values may have operators. */
type CompiledDescriptor = readonly { readonly key: string; readonly value: Format }[];

/** Throws a BatonError with the place of a mistake, Mistakes for several. */
export function compileDescriptors(descriptors: readonly RateLimitDescriptor[] | undefined): CompiledDescriptor[] {
  return buildEach(descriptors ?? [], ({ entries }, index) =>
    buildEach(entries ?? [], ({ key, value }, at) => ({
      key: byteText(key!),
      value: formatOf(value ?? '', `descriptors[${index}].entries[${at}].value`),
    })),
  );
}

function formatOf(text: string, where: string): Format {
  try {
    return compileFormat(text);
  } catch (error) {
    throw new BatonError('CONFIG_INVALID', messageOf(error), { where, cause: error });
  }
}
