// Finds extensions by their typed_config and kind. The loader has checked that they exist: a miss is a defect.

import type { AccessLogger } from '../access-log/access-logger.js';
import { GuardedLogger } from '../access-log/guarded-logger.js';
import { callExtension } from '../common/errors/defects.js';
import type { AccessLog, AccessLogType, Any } from '../config/generated/api.js';
import { messageNameOf } from '../config/schema/message-name.js';
import type { ScopeRequest } from '../stats/store.js';
import type { LoadBalancingPolicies } from '../upstream/load-balancer/policy.js';
import type {
  AccessLoggerExtension,
  AnyExtension,
  ClusterSpecifierExtension,
  ExtensionFinder,
  HttpFilterExtension,
  ListenerFilterExtension,
  LoadBalancingPolicyExtension,
  NetworkFilterExtension,
  StatsSinkExtension,
  TerminalHttpFilterExtension,
  TerminalNetworkFilterExtension,
  TracerExtension,
  UdpListenerFilterExtension,
  WorkerContext,
  WrappingPolicyExtension,
} from './factories.js';
import { createFiltered } from './log-filters.js';

export class ExtensionRegistry implements ExtensionFinder, LoadBalancingPolicies {
  readonly #byMessage = new Map<string, AnyExtension>();
  readonly #policies = new Map<string, LoadBalancingPolicyExtension>();

  constructor(extensions: readonly AnyExtension[]) {
    for (const extension of extensions) {
      for (const url of extension.typeUrls) this.#byMessage.set(messageNameOf(url), extension);
      if (extension.category === 'envoy.load_balancing_policies' && !('wrap' in extension))
        this.#policies.set(extension.name, extension);
    }
  }

  listenerFilter(config: Any): ListenerFilterExtension {
    const extension = this.#find(config);
    if (extension.category === 'envoy.filters.listener') return extension;
    throw wrongKind(config, 'a listener filter');
  }

  udpListenerFilter(config: Any): UdpListenerFilterExtension {
    const extension = this.#find(config);
    if (extension.category === 'envoy.filters.udp_listener') return extension;
    throw wrongKind(config, 'a filter of UDP listeners');
  }

  networkFilter(config: Any): NetworkFilterExtension | TerminalNetworkFilterExtension {
    const extension = this.#find(config);
    if (extension.category === 'envoy.filters.network') return extension;
    throw wrongKind(config, 'a network filter');
  }

  httpFilter(config: Any): HttpFilterExtension | TerminalHttpFilterExtension {
    const extension = this.#find(config);
    if (extension.category === 'envoy.filters.http') return extension;
    throw wrongKind(config, 'an HTTP filter');
  }

  hasHttpFilter(config: Any): boolean {
    return this.#byMessage.get(messageNameOf(config['@type']))?.category === 'envoy.filters.http';
  }

  accessLogger(config: Any): AccessLoggerExtension {
    const extension = this.#find(config);
    if (extension.category === 'envoy.access_loggers') return extension;
    throw wrongKind(config, 'an access logger');
  }

  clusterSpecifier(config: Any): ClusterSpecifierExtension | undefined {
    const extension = this.#byMessage.get(messageNameOf(config['@type']));
    return extension?.category === 'envoy.router.cluster_specifier_plugin' ? extension : undefined;
  }

  tracer(config: Any): TracerExtension {
    const extension = this.#find(config);
    if (extension.category === 'envoy.tracers') return extension;
    throw wrongKind(config, 'a tracer');
  }

  statsSink(config: Any): StatsSinkExtension {
    const extension = this.#find(config);
    if (extension.category === 'envoy.stats_sinks') return extension;
    throw wrongKind(config, 'a stats sink');
  }

  policyNamed(name: string): LoadBalancingPolicyExtension {
    const policy = this.#policies.get(name);
    if (policy === undefined) throw new Error(`'${name}' is not a load-balancing policy of this build`);
    return policy;
  }

  policyOf(typeUrl: string): LoadBalancingPolicyExtension | WrappingPolicyExtension | undefined {
    const extension = this.#byMessage.get(messageNameOf(typeUrl));
    return extension?.category === 'envoy.load_balancing_policies' ? extension : undefined;
  }

  #find(config: Any): AnyExtension {
    const extension = this.#byMessage.get(messageNameOf(config['@type']));
    if (extension === undefined) throw wrongKind(config, 'an extension of this build');
    return extension;
  }
}

/**
 * Creates the loggers of an access_log list, behind their filters. All their records have type `recordType`. If one cannot be
 * created, closes the others and throws.
 */
export function createAccessLoggers(
  configs: readonly AccessLog[] | undefined,
  recordType: AccessLogType,
  context: WorkerContext,
): AccessLogger[] {
  const { runtime, random, transport } = context;
  const loggers: AccessLogger[] = [];
  try {
    for (const log of configs ?? []) {
      const logger = createFiltered(log, { runtime, random, recordType }, () =>
        createLogger(log.typed_config!, context),
      );
      loggers.push(new GuardedLogger(logger, (error) => transport.report(error, 'an access logger failed')));
    }
    return loggers;
  } catch (error) {
    for (const logger of loggers) logger.close();
    throw error;
  }
}

/** Returns the scopes of the loggers of an access_log list. */
export function accessLogScopes(
  configs: readonly AccessLog[] | undefined,
  extensions: ExtensionFinder,
): ScopeRequest[] {
  return (configs ?? []).flatMap(({ typed_config: config }) => {
    const extension = extensions.accessLogger(config!);
    return callExtension('scopes', extension.name, () => extension.scopes?.(config!) ?? []);
  });
}

function createLogger(config: Any, context: WorkerContext): AccessLogger {
  const extension = context.extensions.accessLogger(config);
  const logger = extension.createOnWorker(config, context);
  if (typeof logger?.log === 'function' && typeof logger.close === 'function' && logger.needs !== undefined)
    return logger;
  throw new TypeError(`createOnWorker() of '${extension.name}' returned no object with needs, log() and close()`);
}

function wrongKind(config: Any, wanted: string): Error {
  return new Error(`${config['@type']} is not ${wanted}`);
}
