// Settings of a resolver that override those of the machine: typed_dns_resolver_config.

import { caresOptions, nameServers } from '../../config/fields/discovery.js';
import type { TypedExtensionConfig } from '../../config/generated/api.js';
import type { ResolvConf } from './resolv-conf.js';

export interface ResolverSettings {
  /** Name servers as `ip:port`; empty: those of the machine. */
  readonly servers: readonly string[];
  /** They are used only if the machine has none. */
  readonly isFallback: boolean;
  /** Short names are not searched in the domains of the machine. */
  readonly skipsSearch: boolean;
  /** Time limit of a query; undefined: that of the machine. */
  readonly timeoutMs: number | undefined;
  /** Queries to each server; undefined: those of the machine. */
  readonly attempts: number | undefined;
}

/** Returns undefined for a resolver without settings. */
export function resolverSettings(resolver: TypedExtensionConfig | undefined): ResolverSettings | undefined {
  const { '@type': _, ...options } = { '@type': '', ...caresOptions(resolver) };
  if (Object.keys(options).length === 0) return undefined;
  const { query_timeout_seconds: seconds } = options;
  return {
    servers: nameServers(options.resolvers),
    isFallback: options.use_resolvers_as_fallback ?? false,
    skipsSearch: options.dns_resolver_options?.no_default_search_domain ?? false,
    timeoutMs: seconds === undefined ? undefined : Math.min(Number(seconds) * 1000, MAX_INT32),
    attempts: options.query_tries === undefined ? undefined : Math.min(options.query_tries, MAX_INT32),
  };
}

/** Node's resolver accepts no larger number. A resolution has a time limit of its own. */
const MAX_INT32 = 2 ** 31 - 1;

/** Applies the settings to those of the machine. */
export function withSettings(conf: ResolvConf, settings: ResolverSettings | undefined): ResolvConf {
  if (settings === undefined) return conf;
  const { attempts, isFallback, servers, skipsSearch, timeoutMs } = settings;
  const replaces = servers.length > 0 && (!isFallback || conf.isServerDefault);
  return {
    ...conf,
    servers: replaces ? servers : conf.servers,
    search: skipsSearch ? [] : conf.search,
    timeoutMs: timeoutMs ?? conf.timeoutMs,
    attempts: attempts ?? conf.attempts,
  };
}
