// The implemented fields of policies, for both RBAC filters.

import { byValue, type ImplementedTable, notImplemented, obeyed, refused } from '../../../sdk.js';

const NO_METADATA = refused('there is no dynamic metadata and no filter state');
const NO_EXPRESSIONS = 'expressions are not implemented: use permissions and principals';
/** For the fields `matcher` and `shadow_matcher`. */
export const NO_MATCHER = refused('use rules, with policies');

export const RULES = {
  'envoy.config.rbac.v3.RBAC': {
    // LOG only sets dynamic metadata.
    action: byValue({ ALLOW: true, DENY: true, LOG: false }),
    policies: true,
    ...notImplemented('audit_logging_options'),
  },
  'envoy.config.rbac.v3.Policy': {
    permissions: true,
    principals: true,
    ...notImplemented('condition', 'checked_condition'),
    cel_config: refused(NO_EXPRESSIONS),
  },
  'envoy.config.rbac.v3.Permission': {
    and_rules: true,
    or_rules: true,
    any: true,
    header: true,
    url_path: true,
    destination_ip: true,
    destination_port: true,
    destination_port_range: true,
    not_rule: true,
    metadata: NO_METADATA,
    requested_server_name: true,
    ...notImplemented('matcher', 'uri_template'),
    sourced_metadata: NO_METADATA,
  },
  'envoy.config.rbac.v3.Permission.Set': obeyed('rules'),
  'envoy.config.rbac.v3.Principal': {
    and_ids: true,
    or_ids: true,
    any: true,
    source_ip: true,
    direct_remote_ip: true,
    remote_ip: true,
    header: true,
    url_path: true,
    not_id: true,
    authenticated: true,
    metadata: NO_METADATA,
    filter_state: NO_METADATA,
    sourced_metadata: NO_METADATA,
    custom: refused('there are no such extensions: use the other principals'),
  },
  'envoy.config.rbac.v3.Principal.Set': obeyed('ids'),
  'envoy.config.rbac.v3.Principal.Authenticated': obeyed('principal_name'),
  'envoy.type.matcher.v3.PathMatcher': obeyed('path'),
  'envoy.type.v3.Int32Range': obeyed('start', 'end'),
} satisfies ImplementedTable;
