// The implemented fields of policies, for both RBAC filters.

import {
  byValue,
  type ImplementedTable,
  notImplemented,
  obeyed,
  onlyExtension,
  onlyFalse,
  refused,
} from '../../../sdk.js';

const NO_EXPRESSIONS = 'expressions are not implemented: use permissions and principals';
const URI_TEMPLATE = 'envoy.path.match.uri_template.uri_template_matcher';
const ONLY_INPUTS = 'inputs of headers, addresses, certificates, metadata and filter state are implemented';
const INPUTS = [
  'envoy.matching.inputs.request_headers',
  'envoy.matching.inputs.destination_ip',
  'envoy.matching.inputs.destination_port',
  'envoy.matching.inputs.source_ip',
  'envoy.matching.inputs.source_port',
  'envoy.matching.inputs.direct_source_ip',
  'envoy.matching.inputs.server_name',
  'envoy.matching.inputs.dynamic_metadata',
  'envoy.matching.inputs.filter_state',
  'envoy.matching.inputs.uri_san',
  'envoy.matching.inputs.dns_san',
  'envoy.matching.inputs.subject',
];

export const RULES = {
  'envoy.config.rbac.v3.RBAC': {
    action: byValue({ ALLOW: true, DENY: true, LOG: true }),
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
    metadata: true,
    requested_server_name: true,
    uri_template: onlyExtension(URI_TEMPLATE, 'other matchers of paths are not implemented'),
    ...notImplemented('matcher'),
    sourced_metadata: true,
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
    metadata: true,
    filter_state: true,
    sourced_metadata: true,
    custom: refused('there are no such extensions: use the other principals'),
  },
  'envoy.config.rbac.v3.Principal.Set': obeyed('ids'),
  'envoy.config.rbac.v3.Principal.Authenticated': obeyed('principal_name'),
  'envoy.config.rbac.v3.SourcedMetadata': {
    metadata_matcher: true,
    metadata_source: byValue({ DYNAMIC: true, ROUTE: true }),
  },
  'envoy.config.rbac.v3.Action': { name: true, action: byValue({ ALLOW: true, DENY: true, LOG: true }) },
  'envoy.type.matcher.v3.FilterStateMatcher': obeyed('key', 'string_match', 'address_match'),
  'envoy.type.matcher.v3.AddressMatcher': obeyed('ranges', 'invert_match'),
  'xds.core.v3.CidrRange': obeyed('address_prefix', 'prefix_len'),
  'xds.core.v3.TypedExtensionConfig': obeyed('name', 'typed_config'),
  'xds.type.matcher.v3.Matcher': obeyed('matcher_list', 'matcher_tree', 'on_no_match'),
  'xds.type.matcher.v3.Matcher.OnMatch': {
    matcher: true,
    action: onlyExtension(
      ['envoy.filters.rbac.action', 'envoy.filters.udp_listener.udp_proxy.route'],
      'the action is an envoy.config.rbac.v3.Action, or the Route of a UDP proxy',
    ),
    keep_matching: onlyFalse('as in Envoy, it is not supported here: leave it out'),
  },
  'xds.type.matcher.v3.Matcher.MatcherList': obeyed('matchers'),
  'xds.type.matcher.v3.Matcher.MatcherList.FieldMatcher': obeyed('predicate', 'on_match'),
  'xds.type.matcher.v3.Matcher.MatcherList.Predicate': obeyed(
    'single_predicate',
    'or_matcher',
    'and_matcher',
    'not_matcher',
  ),
  'xds.type.matcher.v3.Matcher.MatcherList.Predicate.PredicateList': obeyed('predicate'),
  'xds.type.matcher.v3.Matcher.MatcherList.Predicate.SinglePredicate': {
    input: onlyExtension(INPUTS, ONLY_INPUTS),
    value_match: true,
    custom_match: onlyExtension(
      ['envoy.matching.matchers.ip', 'envoy.matching.matchers.metadata_matcher'],
      'use one of these, or value_match',
    ),
  },
  'xds.type.matcher.v3.Matcher.MatcherTree': {
    input: onlyExtension(INPUTS, ONLY_INPUTS),
    exact_match_map: true,
    prefix_match_map: true,
    custom_match: onlyExtension('envoy.matching.custom_matchers.ip_range_matcher', 'use a map, or a matcher_list'),
  },
  'xds.type.matcher.v3.Matcher.MatcherTree.MatchMap': obeyed('map'),
  'xds.type.matcher.v3.StringMatcher': {
    ...obeyed('exact', 'prefix', 'suffix', 'safe_regex', 'contains', 'ignore_case'),
    ...notImplemented('custom'),
  },
  'xds.type.matcher.v3.RegexMatcher': obeyed('google_re2', 'regex'),
  'envoy.type.matcher.v3.PathMatcher': obeyed('path'),
  'envoy.type.v3.Int32Range': obeyed('start', 'end'),
} satisfies ImplementedTable;
