// envoy.filters.http.csrf: refuses requests that change something and come from a page of another origin.

import type { CsrfPolicy } from '../../../../config/generated/api.js';
import {
  compileStringMatcher,
  defineLayout,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  headerKey,
  Method,
  obeyed,
  type Random,
  ResponseFlag,
  type Runtime,
  type RuntimeFraction,
  reportMistakes,
  type Scope,
  type StreamControl,
  type StringRule,
} from '../../../sdk.js';

const Stats = defineLayout({ missing_source_origin: 'counter', request_invalid: 'counter', request_valid: 'counter' });
const ORIGIN = headerKey('origin');
const REFERER = headerKey('referer');
const HOST = headerKey('host');

export const csrf: HttpFilterExtension<CsrfPolicy> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.csrf',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.csrf.v3.CsrfPolicy'],
  takesOwnMessageFromRoutes: true,
  implemented: {
    'envoy.extensions.filters.http.csrf.v3.CsrfPolicy': obeyed(
      'filter_enabled',
      'shadow_enabled',
      'additional_origins',
    ),
  },
  validate(config, report) {
    reportMistakes(report, '', () => compileOrigins(config as CsrfPolicy, ''));
  },
  scopes: (_config, { statPrefix }) => [{ prefix: `${statPrefix}csrf.`, layout: Stats }],
  createOnWorker(config, { random, runtime, scope }, { statPrefix }) {
    const own = new Policy(config, '', runtime);
    const stats = scope(`${statPrefix}csrf.`, Stats);
    return {
      create(stream, routeConfig) {
        const policy = (routeConfig as Policy | undefined) ?? own;
        const isEnforced = policy.isEnforced(random);
        return isEnforced || policy.isObserved(random) ? new CsrfFilter(stream, policy, stats, isEnforced) : undefined;
      },
    };
  },
  /** The most specific policy applies. */
  compileRouteConfig: (configs, where, runtime) => new Policy(configs.at(-1) as CsrfPolicy, where, runtime),
};

function compileOrigins({ additional_origins: origins = [] }: CsrfPolicy, where: string): StringRule[] {
  const list = where === '' ? 'additional_origins' : `${where}.additional_origins`;
  return origins.map((origin, index) => compileStringMatcher(origin, `${list}[${index}]`));
}

class Policy {
  readonly #enforced: RuntimeFraction;
  readonly #observed: RuntimeFraction;
  readonly #origins: readonly StringRule[];

  constructor(config: CsrfPolicy, where: string, runtime: Runtime) {
    this.#enforced = runtime.fractionOf(config.filter_enabled, { numerator: 0 });
    this.#observed = runtime.fractionOf(config.shadow_enabled, { numerator: 0 });
    this.#origins = compileOrigins(config, where);
  }

  isEnforced(random: Random): boolean {
    return this.#enforced.isHit(random);
  }

  isObserved(random: Random): boolean {
    return this.#observed.isHit(random);
  }

  /** Returns whether a request may come from this origin, without scheme. */
  allows(origin: string, host: string): boolean {
    return origin === host || this.#origins.some((rule) => rule.matchesText(origin));
  }
}

class CsrfFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #policy: Policy;
  readonly #stats: Scope;
  readonly #isEnforced: boolean;

  constructor(stream: StreamControl, policy: Policy, stats: Scope, isEnforced: boolean) {
    this.#stream = stream;
    this.#policy = policy;
    this.#stats = stats;
    this.#isEnforced = isEnforced;
  }

  decodeHeaders(headers: HeaderBlock): HeadersStatus {
    if (!changesSomething(headers.method) || this.#isValid(headers) || !this.#isEnforced) return HeadersStatus.Continue;
    this.#stream.sendLocalReply({
      status: 403,
      body: 'Invalid origin',
      details: 'csrf_origin_mismatch',
      flags: ResponseFlag.None,
    });
    return HeadersStatus.StopIteration;
  }

  #isValid(headers: HeaderBlock): boolean {
    const origin = sourceOf(headers);
    if (origin === '') {
      this.#stats.increment(Stats.at.missing_source_origin);
      return false;
    }
    const isValid = this.#policy.allows(origin, headers.get(HOST) ?? '');
    this.#stats.increment(isValid ? Stats.at.request_valid : Stats.at.request_invalid);
    return isValid;
  }
}

function changesSomething(method: Method): boolean {
  return method === Method.Post || method === Method.Put || method === Method.Delete || method === Method.Patch;
}

/** Returns host and port of the page that has sent the request; '': it does not say. */
function sourceOf(headers: HeaderBlock): string {
  const origin = headers.get(ORIGIN) ?? '';
  if (origin === 'null') return '';
  const url = origin === '' ? (headers.get(REFERER) ?? '') : origin;
  return url.replace(/^[a-z][a-z0-9+.-]*:\/\//i, '').replace(/[/?#].*/s, '');
}
