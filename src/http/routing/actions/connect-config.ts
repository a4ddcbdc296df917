// connect_config of a route: which requests end here, with their body sent to a host over TCP.

import { BatonError } from '../../../common/errors/errors.js';
import type {
  ProxyProtocolConfig_Version,
  RouteAction,
  RouteAction_UpgradeConfig_ConnectConfig,
} from '../../../config/generated/api.js';
import { type HeaderBlock, Method } from '../../headers/header-block.js';
import { CONNECT } from './upgrade-types.js';

export class ConnectConfig {
  /** The version of the PROXY protocol whose header precedes the body; undefined: none. */
  readonly proxyVersion: ProxyProtocolConfig_Version | undefined;
  readonly #allowsPost: boolean;

  constructor({ allow_post: allowsPost, proxy_protocol_config: proxy }: RouteAction_UpgradeConfig_ConnectConfig) {
    // As in Envoy, its TLVs have no effect here.
    this.proxyVersion = proxy && (proxy.version ?? 'V1');
    this.#allowsPost = allowsPost ?? false;
  }

  /**
   * Returns undefined if an action forwards CONNECT as it is.
   * @throws BatonError CONFIG_INVALID; `where` is the path of upgrade_configs in the configuration
   */
  static of({ upgrade_configs: upgrades = [] }: RouteAction, where: string): ConnectConfig | undefined {
    for (const [index, { connect_config: config, upgrade_type: type = '' }] of upgrades.entries()) {
      if (config === undefined || type.toLowerCase() === CONNECT) continue;
      const at = { where: `${where}[${index}].connect_config` };
      throw new BatonError('CONFIG_INVALID', `Non-CONNECT upgrade type ${type} has ConnectConfig`, at);
    }
    const found = upgrades.find(({ connect_config: config, enabled = true }) => config !== undefined && enabled);
    return found && new ConnectConfig(found.connect_config!);
  }

  /** Returns whether the request ends here. */
  endsHere({ method }: HeaderBlock): boolean {
    return method === Method.Connect || (this.#allowsPost && method === Method.Post);
  }
}
