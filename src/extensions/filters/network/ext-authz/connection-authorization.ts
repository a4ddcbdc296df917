// The compiled configuration of the network filter ext_authz, one per filter chain and worker.

import type { ExtAuthzExtAuthz as FilterConfig } from '../../../../config/generated/api.js';
import { GrpcChannel } from '../../../grpc-sdk.js';
import { defineLayout, type FilteredClient, MetadataRule, type Scope, type WorkerContext } from '../../../sdk.js';
import { type ConnectionCheckRules, encodeConnectionCheck, labelsOf } from '../../http/ext-authz/check-request.js';

export const ConnectionAuthzStats = defineLayout({
  total: 'counter',
  ok: 'counter',
  denied: 'counter',
  error: 'counter',
  failure_mode_allowed: 'counter',
  disabled: 'counter',
  cx_closed: 'counter',
  active: 'gauge',
});

export class ConnectionAuthorization {
  readonly channel: GrpcChannel;
  readonly stats: Scope;
  readonly allowsOnError: boolean;
  /** Decisions are counted, and not enforced. */
  readonly isShadow: boolean;
  readonly nowMs: () => number;
  readonly #enabled: MetadataRule | undefined;
  readonly #rules: ConnectionCheckRules;

  constructor(config: FilterConfig, { calls, clock, node }: WorkerContext, stats: Scope) {
    const { bootstrap_metadata_labels_key: labelsKey = '', filter_enabled_metadata: enabled } = config;
    this.channel = new GrpcChannel(config.grpc_service!, calls);
    this.stats = stats;
    this.allowsOnError = config.failure_mode_allow ?? false;
    this.isShadow = config.shadow_mode ?? false;
    this.nowMs = () => clock.monotonicMs;
    this.#enabled = enabled && new MetadataRule(enabled, '');
    this.#rules = {
      includesCertificate: config.include_peer_certificate ?? false,
      includesTlsSession: config.include_tls_session ?? false,
      namespaces: config.metadata_context_namespaces ?? [],
      labels: labelsKey === '' ? new Map() : labelsOf(node.metadata?.[labelsKey]),
    };
  }

  appliesTo({ dynamicMetadata }: FilteredClient): boolean {
    return this.#enabled === undefined || this.#enabled.matches(dynamicMetadata);
  }

  questionFor(client: FilteredClient): Uint8Array {
    return encodeConnectionCheck(this.#rules, client);
  }
}
