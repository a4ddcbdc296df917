// envoy.filters.network.http_connection_manager: the extension that serves HTTP on a listener.

import { readFileSync } from 'node:fs';
import type { HttpConnectionManager } from '../../../../config/generated/api.js';
import { ConnectionManager } from '../../../../http/connection-manager.js';
import { InternalAddresses } from '../../../../http/internal-addresses.js';
import { buildRouteTable } from '../../../../http/routing/route-table.js';
import { Http1CodecStats, HttpStats, ListenerHttpStats } from '../../../../stats/layouts/http.js';
import type { ListenerIdentity, NetworkFilterExtension } from '../../../factories.js';
import { reportMistakes } from '../../../report-mistakes.js';
import { connectionManagerOptions } from './options.js';

export const httpConnectionManager: NetworkFilterExtension<HttpConnectionManager> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.http_connection_manager',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'],
  isTerminal: true,
  validate(config, report) {
    const { internal_address_config: internal, route_config: routes = {} } = config as HttpConnectionManager;
    const readFile = (path: string): Uint8Array => readFileSync(path);
    reportMistakes(report, 'internal_address_config', () => InternalAddresses.of(internal));
    reportMistakes(report, 'route_config', () => buildRouteTable(routes, () => undefined, { readFile }));
  },
  scopes: (config, listener) => [
    { prefix: httpPrefix(config), layout: HttpStats },
    { prefix: listenerPrefix(config, listener), layout: ListenerHttpStats },
    { prefix: HTTP1_PREFIX, layout: Http1CodecStats },
  ],
  createOnWorker(config, listener, context) {
    const stats = {
      http: context.scope(httpPrefix(config), HttpStats),
      listener: context.scope(listenerPrefix(config, listener), ListenerHttpStats),
      http1: context.scope(HTTP1_PREFIX, Http1CodecStats),
    };
    return new ConnectionManager(context, connectionManagerOptions(config, listener, context), stats);
  },
};

const HTTP1_PREFIX = 'http1.';

function httpPrefix(config: HttpConnectionManager): string {
  return `http.${config.stat_prefix}.`;
}

function listenerPrefix(config: HttpConnectionManager, listener: ListenerIdentity): string {
  return `listener.${listener.statToken}.http.${config.stat_prefix}.`;
}
