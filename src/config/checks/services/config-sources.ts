// Configuration sources: what they depend on must be defined statically.

import { existsSync } from 'node:fs';
import { fileOfSource } from '../../fields/file-of-source.js';
import { permitsInternalListeners } from '../../fields/internal-listener.js';
import { isGlob, parseXdstp } from '../../fields/xdstp-name.js';
import type { ApiConfigSource, Bootstrap, Cluster, ConfigSource } from '../../generated/api.js';
import type { Message } from '../../schema/decode.js';
import { MessageFinder } from '../../schema/find-messages.js';
import type { Schema } from '../../schema/schema.js';
import { type Path, parsePath } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import { checkManagementService } from './grpc-service.js';

/** What sources can depend on, all of it static. Plain data. */
export interface Reach {
  /** Clusters whose hosts do not come from a management server. */
  readonly primaryClusters: ReadonlySet<string>;
  /** Clusters that use HTTP/2. */
  readonly http2Clusters: ReadonlySet<string>;
  /** Whether dynamic_resources.ads_config is set. */
  readonly hasAds: boolean;
  /** Whether ads_config uses delta xDS. */
  readonly isAdsDelta: boolean;
  /** See CheckContext. */
  readonly permitsInternal: boolean;
}

export function reachOf(bootstrap: Bootstrap, http2Clusters: ReadonlySet<string>): Reach {
  const ads = bootstrap.dynamic_resources?.ads_config;
  const clusters = (bootstrap.static_resources?.clusters ?? []).filter((cluster) => cluster && isPrimary(cluster));
  return {
    primaryClusters: new Set(clusters.map((cluster) => cluster.name ?? '')),
    http2Clusters,
    hasAds: ads !== undefined,
    isAdsDelta: ads?.api_type === 'DELTA_GRPC',
    permitsInternal: permitsInternalListeners(bootstrap),
  };
}

/** Reports unreachable sources in a message. `name`: its full name. */
export function checkConfigSources(
  schema: Schema,
  name: string,
  message: unknown,
  reach: Reach,
  problems: Problems,
): void {
  finderOf(schema).find(name, message as Message, (found, path) => {
    const source = found as ConfigSource;
    if (source.ads !== undefined && !reach.hasAds && !problems.has([...path, 'ads'])) {
      problems.error([...path, 'ads'], 'it needs dynamic_resources.ads_config, which is not set');
    }
    checkWatch(source, path, problems);
    if (path.at(-2) === 'vhds') checkIsDelta('virtual hosts', source, path, reach, problems);
    if (isOnDemand(path)) checkIsDelta('clusters on demand', source, path, reach, problems);
    if (source.api_config_source) checkApi(source.api_config_source, [...path, 'api_config_source'], reach, problems);
  });
}

/** Reports files and watched directories of sources that do not exist, most likely because of a typo. `name`: the message's full name. */
export function reportMissingFiles(
  schema: Schema,
  name: string,
  message: unknown,
  report: (path: Path, message: string) => void,
): void {
  finderOf(schema).find(name, message as Message, (found, at) => {
    const { path, path_config_source: file } = found as ConfigSource;
    const check = (place: Path, named: string | undefined) => {
      if (named === undefined || existsSync(named)) return;
      report(place, `paths must refer to an existing path in the system: '${named}' does not exist`);
    };
    check([...at, 'path'], path);
    check([...at, 'path_config_source', 'path'], file?.path);
    check([...at, 'path_config_source', 'watched_directory', 'path'], file?.watched_directory?.path);
  });
}

/** Calls `found` with each source in a message and its path. `name`: the message's full name. */
export function sourcesIn(
  schema: Schema,
  name: string,
  message: unknown,
  found: (source: ConfigSource, path: Path) => void,
): void {
  finderOf(schema).find(name, message as Message, (source, path) => found(source as ConfigSource, path));
}

/** Like checkConfigSources(), for the streams of the server itself: ads_config, load_stats_config and hds_config. */
export function checkServerStreams(bootstrap: Bootstrap, reach: Reach, problems: Problems): void {
  const ads = bootstrap.dynamic_resources?.ads_config;
  if (ads !== undefined) checkApi(ads, ['dynamic_resources', 'ads_config'], reach, problems);
  const loads = bootstrap.cluster_manager?.load_stats_config;
  if (loads !== undefined) checkApi(loads, ['cluster_manager', 'load_stats_config'], reach, problems);
  if (bootstrap.hds_config !== undefined) checkApi(bootstrap.hds_config, ['hds_config'], reach, problems);
}

/** Reports locators of collections that are not implemented, or that are not those of listeners or clusters. */
export function checkCollections(
  { dynamic_resources: dynamic = {} }: Bootstrap,
  reach: Reach,
  problems: Problems,
): void {
  const check = (field: 'lds' | 'cds', type: string) => {
    const locator = dynamic[`${field}_resources_locator`];
    const source = dynamic[`${field}_config`];
    const path = ['dynamic_resources', `${field}_resources_locator`];
    if (!locator || problems.has(path)) return;
    const name = parseXdstp(locator);
    if (name === undefined) return problems.error(path, 'it must be an xdstp name without directives');
    if (name.type !== type) return problems.error(path, `xdstp:// type does not match ${type} in ${locator}`);
    if (!isGlob(name)) return problems.error(path, "only glob collections are implemented, whose names end with '/*'");
    if (source === undefined) problems.error(path, `it needs ${field}_config: where the collection comes from`);
    else checkIsDelta('collections', source, ['dynamic_resources', `${field}_config`], reach, problems);
  };
  check('lds', 'envoy.config.listener.v3.Listener');
  check('cds', 'envoy.config.cluster.v3.Cluster');
}

function checkWatch({ path_config_source: file }: ConfigSource, path: Path, problems: Problems): void {
  if (file?.poll_interval === undefined || file.watched_directory === undefined) return;
  const at = [...path, 'path_config_source', 'poll_interval'];
  if (!problems.has(at)) problems.error(at, 'it cannot be combined with watched_directory', 'key');
}

/** Returns whether a source is that of clusters on demand. */
function isOnDemand(path: Path): boolean {
  return path.at(-1) === 'odcds_config' || (path.at(-2) === 'odcds' && path.at(-1) === 'source');
}

/** Reports sources without delta xDS for resources that are requested one by one, which only delta supports. */
function checkIsDelta(what: string, source: ConfigSource, path: Path, reach: Reach, problems: Problems): void {
  const { ads, api_config_source: api } = source;
  const isDelta = ads !== undefined ? reach.isAdsDelta || !reach.hasAds : api?.api_type === 'DELTA_GRPC';
  if (isDelta || problems.has(path)) return;
  problems.error(path, `${what} can be discovered only by DELTA_GRPC, or by ADS whose ads_config uses it`);
}

function checkApi(source: ApiConfigSource, path: Path, reach: Reach, problems: Problems): void {
  if (problems.has([...path, 'api_type'])) return;
  if (source.api_type === 'REST') checkRest(source, path, reach, problems);
  else checkGrpc(source, path, reach, problems);
}

function checkRest(source: ApiConfigSource, path: Path, reach: Reach, problems: Problems): void {
  const { cluster_names: clusters = [], grpc_services: services = [], refresh_delay: delay } = source;
  const at = [...path, 'cluster_names'];
  if (path.at(-1) !== 'api_config_source') problems.error([...path, 'api_type'], 'it must be GRPC or DELTA_GRPC');
  if (clusters.length !== 1)
    problems.error(clusters.length === 0 ? path : at, `cluster_names must have one element, found ${clusters.length}`);
  if (services.length > 0) problems.error([...path, 'grpc_services'], 'a source with REST has no grpc_services');
  if (delay === undefined) problems.error(path, 'refresh_delay is required for REST API configuration sources');
  clusters.forEach((name, index) => {
    if (!reach.primaryClusters.has(name)) problems.error([...at, index], unreachable(name));
  });
}

function checkGrpc(source: ApiConfigSource, path: Path, reach: Reach, problems: Problems): void {
  const services = source.grpc_services ?? [];
  const at = [...path, 'grpc_services'];
  if (services.length !== 1 && !problems.has(at)) {
    problems.error(services.length === 0 ? path : at, `grpc_services must have one element, found ${services.length}`);
  }
  if ((source.cluster_names ?? []).length > 0)
    problems.error([...path, 'cluster_names'], 'it is for REST: name the cluster in grpc_services');
  services.forEach((service, index) => {
    checkManagementService(service, '', (inner, message) => {
      problems.error([...at, index, ...parsePath(inner)], message);
    });
    const name = service?.envoy_grpc?.cluster_name;
    if (name === undefined) return;
    const place = [...at, index, 'envoy_grpc', 'cluster_name'];
    if (!reach.primaryClusters.has(name)) problems.error(place, unreachable(name));
    else if (!reach.http2Clusters.has(name))
      problems.error(place, `gRPC needs HTTP/2: give cluster '${name}' http2_protocol_options`);
  });
}

function unreachable(name: string): string {
  return `a source of configuration must have a statically defined non-EDS cluster: '${name}' does not exist, was added via API, or is an EDS cluster`;
}

const finders = new WeakMap<Schema, MessageFinder>();

function finderOf(schema: Schema): MessageFinder {
  let finder = finders.get(schema);
  if (finder === undefined) {
    finder = new MessageFinder(schema, SOURCE);
    finders.set(schema, finder);
  }
  return finder;
}

/** Returns whether the hosts of a cluster are known without a management server. */
function isPrimary({ type, eds_cluster_config: eds }: Cluster): boolean {
  return type !== 'EDS' || fileOfSource(eds?.eds_config ?? {}) !== undefined;
}

const SOURCE = 'envoy.config.core.v3.ConfigSource';
