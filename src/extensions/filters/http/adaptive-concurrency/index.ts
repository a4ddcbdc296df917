// envoy.filters.http.adaptive_concurrency: limits the requests in flight by the latency of the hosts.

import type { AdaptiveConcurrency } from '../../../../config/generated/api.js';
import { errorStatus, type HttpChain, type HttpFilterExtension, obeyed, Runtime } from '../../../sdk.js';
import { AdaptiveConcurrencyFilter } from './adaptive-concurrency-filter.js';
import { ConcurrencyLimit } from './concurrency-limit.js';
import { gradientMemory } from './gradient.js';
import { GradientSettings } from './settings.js';
import { shareMemory } from './shared-memories.js';
import { GradientStats } from './stats.js';

const PACKAGE = 'envoy.extensions.filters.http.adaptive_concurrency.v3';
const CONTROLLER = `${PACKAGE}.GradientControllerConfig`;
/** As in Envoy, a status that is no error is replaced by this one. */
const UNAVAILABLE = 503;

export const adaptiveConcurrency: HttpFilterExtension<AdaptiveConcurrency> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.adaptive_concurrency',
  typeUrls: [`type.googleapis.com/${PACKAGE}.AdaptiveConcurrency`],
  implemented: {
    [`${PACKAGE}.AdaptiveConcurrency`]: obeyed(
      'gradient_controller_config',
      'enabled',
      'concurrency_limit_exceeded_status',
    ),
    [CONTROLLER]: obeyed('sample_aggregate_percentile', 'concurrency_limit_params', 'min_rtt_calc_params'),
    [`${CONTROLLER}.ConcurrencyLimitCalculationParams`]: obeyed(
      'max_concurrency_limit',
      'concurrency_update_interval',
      'min_concurrency_limit',
    ),
    [`${CONTROLLER}.MinimumRTTCalculationParams`]: obeyed(
      'interval',
      'fixed_value',
      'request_count',
      'jitter',
      'min_concurrency',
      'buffer',
    ),
  },
  validate(config, report) {
    const { gradient_controller_config: controller } = config as AdaptiveConcurrency;
    const { fixed_value: fixed, interval } = controller?.min_rtt_calc_params ?? {};
    const settings = new GradientSettings(controller ?? {}, new Runtime());
    if (interval !== undefined || settings.fixedMs > 0) return;
    const place = 'gradient_controller_config.min_rtt_calc_params';
    if (fixed === undefined)
      report(place, 'it needs an interval, in which the round trip is measured, or a fixed_value');
    else report(`${place}.fixed_value`, 'it must be at least 0.001s');
  },
  scopes: (_config, chain) => [{ prefix: prefixOf(chain), layout: GradientStats }],
  createOnPrimary(config, context, chain) {
    const settings = new GradientSettings(config.gradient_controller_config!, new Runtime());
    return shareMemory(context, keyOf(config, chain), () => gradientMemory(settings));
  },
  createOnWorker(config, context, chain) {
    const settings = new GradientSettings(config.gradient_controller_config!, context.runtime);
    const stats = context.scope(prefixOf(chain), GradientStats);
    const limit = new ConcurrencyLimit(context, keyOf(config, chain), settings, stats);
    const enabled = context.runtime.flag(config.enabled, true);
    const status = errorStatus(config.concurrency_limit_exceeded_status, UNAVAILABLE);
    return {
      create(stream) {
        if (limit.gradient === undefined || !enabled.value) return undefined;
        return new AdaptiveConcurrencyFilter(stream, limit, status);
      },
      close: () => limit.close(),
    };
  },
};

function prefixOf({ statPrefix }: HttpChain): string {
  return `${statPrefix}adaptive_concurrency.gradient_controller.`;
}

/** Filters with the same stats and settings have one limit together. */
function keyOf(config: AdaptiveConcurrency, { statPrefix }: HttpChain): string {
  return JSON.stringify([statPrefix, config.gradient_controller_config]);
}
