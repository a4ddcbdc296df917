// Checks across messages of a bootstrap: duplicate names, dangling references, invalid filter orders.

import type { ExtensionCatalog } from '../catalog/extension.js';
import { speaksHttp2 } from '../fields/http-options.js';
import { permitsInternalListeners } from '../fields/internal-listener.js';
import type { Bootstrap } from '../generated/api.js';
import type { Schema } from '../schema/schema.js';
import type { Problems } from '../text/problems.js';
import { checkBindable, checkSocket, checkStream } from './addresses.js';
import { checkClusters } from './clusters/clusters.js';
import { checkDnsCaches } from './clusters/dns-caches.js';
import { checkLocalCluster } from './clusters/local-cluster.js';
import { checkListeners } from './listeners/listeners.js';
import { checkOverload } from './overload.js';
import { checkRuntime } from './runtime.js';
import { checkScripts } from './scripts.js';
import { checkCollections, checkConfigSources, checkServerStreams, reachOf } from './services/config-sources.js';
import { checkStatsSinks } from './services/stats-sinks.js';
import { checkWatchdogs } from './watchdogs.js';

/** Checks a bootstrap whose messages are valid individually. */
export function checkBootstrap(
  bootstrap: Bootstrap,
  schema: Schema,
  catalog: ExtensionCatalog,
  problems: Problems,
): void {
  const clusters = bootstrap.static_resources?.clusters ?? [];
  checkRuntime(bootstrap.layered_runtime, problems);
  checkWatchdogs(bootstrap, problems);
  checkOverload(bootstrap.overload_manager, problems);
  checkClusters(clusters, catalog, problems);
  checkLocalCluster(bootstrap, problems);
  const known = new Set(clusters.map((cluster) => cluster?.name ?? ''));
  const http2 = clusters.filter((cluster) => cluster && speaksHttp2(cluster)).map((cluster) => cluster.name ?? '');
  const secrets = (bootstrap.static_resources?.secrets ?? []).filter((secret) => secret?.generic_secret !== undefined);
  const context = {
    catalog,
    problems,
    clusters: known,
    secrets: new Set(secrets.map((secret) => secret.name ?? '')),
    http2Clusters: new Set(http2),
    permitsInternal: permitsInternalListeners(bootstrap),
    mayGrow: bootstrap.dynamic_resources?.cds_config !== undefined,
  };
  checkListeners(bootstrap.static_resources?.listeners ?? [], bootstrap.admin?.address, context);
  checkStatsSinks(bootstrap.stats_sinks ?? [], context);
  checkScripts(bootstrap, problems);
  const reach = reachOf(bootstrap, context.http2Clusters);
  checkServerStreams(bootstrap, reach, problems);
  checkCollections(bootstrap, reach, problems);
  checkConfigSources(schema, 'envoy.config.bootstrap.v3.Bootstrap', bootstrap, reach, problems);
  checkDnsCaches(bootstrap, schema, problems);
  const address = bootstrap.admin?.address?.socket_address;
  checkStream(address, ['admin', 'address', 'socket_address'], problems);
  checkBindable(bootstrap.admin?.address, ['admin', 'address'], problems);
  checkSocket(bootstrap.admin?.address, 'the admin interface', ['admin', 'address'], problems);
}
