// Compiles the permissions (what is requested) and principals (who requests it) of policies.

import type {
  CidrRange,
  FilterStateMatcher,
  Permission,
  Principal,
  UriTemplateMatchConfig,
} from '../../../../config/generated/api.js';
import {
  BatonError,
  compileStringMatcher,
  HeaderRule,
  type IpRange,
  ipRange,
  isInRange,
  MetadataRule,
  parseIp,
  UriTemplate,
} from '../../../sdk.js';
import {
  AddressCondition,
  type Addresses,
  type AddressOf,
  ALWAYS,
  AuthenticatedCondition,
  type Condition,
  Every,
  FilterStateCondition,
  HeaderCondition,
  MetadataCondition,
  Not,
  PathCondition,
  PortCondition,
  ServerNameCondition,
  Some,
  TemplateCondition,
} from './conditions.js';

/** Compiles a list of conditions, at least one of which must hold. `where` is its path. Throws a BatonError if it cannot be compiled. */
export function compilePermissions(configs: readonly Permission[] | undefined, where: string): Condition {
  return new Some(permissions(configs, where));
}

/** Does the same as compilePermissions() for principals. */
export function compilePrincipals(configs: readonly Principal[] | undefined, where: string): Condition {
  return new Some(principals(configs, where));
}

const local: AddressOf = (info) => info.downstreamLocalAddress;
/** The peer of the socket. */
const direct: AddressOf = (info) => info.downstreamDirectRemoteAddress;
/** The address from the PROXY protocol if a preceding proxy sent one; x-forwarded-for is ignored. */
const source = (info: Addresses) => info.downstream?.remoteText ?? '';
const remote: AddressOf = (info) => info.downstreamRemoteAddress;

function permissions(configs: readonly Permission[] = [], where: string): Condition[] {
  return configs.map((config, index) => permission(config, `${where}[${index}]`));
}

function permission(config: Permission, where: string): Condition {
  const { and_rules, destination_ip, destination_port, destination_port_range: ports, not_rule, or_rules } = config;
  if (and_rules !== undefined) return new Every(permissions(and_rules.rules, `${where}.and_rules.rules`));
  if (or_rules !== undefined) return new Some(permissions(or_rules.rules, `${where}.or_rules.rules`));
  if (not_rule !== undefined) return new Not(permission(not_rule, `${where}.not_rule`));
  if (destination_ip !== undefined) return address(destination_ip, local, `${where}.destination_ip`);
  if (destination_port !== undefined) return new PortCondition(destination_port, destination_port + 1);
  if (ports !== undefined) return new PortCondition(ports.start ?? 0, ports.end ?? 0);
  const { requested_server_name: serverName } = config;
  if (serverName !== undefined)
    return new ServerNameCondition(compileStringMatcher(serverName, `${where}.requested_server_name`));
  if (config.uri_template !== undefined) {
    const { path_template: template = '' } = config.uri_template.typed_config as unknown as UriTemplateMatchConfig;
    return new TemplateCondition(new UriTemplate(template, `${where}.uri_template.typed_config.path_template`).regex);
  }
  return common(config, where);
}

function principals(configs: readonly Principal[] = [], where: string): Condition[] {
  return configs.map((config, index) => principal(config, `${where}[${index}]`));
}

function principal(config: Principal, where: string): Condition {
  const { and_ids, authenticated, direct_remote_ip, not_id, or_ids, remote_ip, source_ip } = config;
  if (and_ids !== undefined) return new Every(principals(and_ids.ids, `${where}.and_ids.ids`));
  if (or_ids !== undefined) return new Some(principals(or_ids.ids, `${where}.or_ids.ids`));
  if (authenticated !== undefined) {
    const { principal_name: name } = authenticated;
    return new AuthenticatedCondition(name && compileStringMatcher(name, `${where}.authenticated.principal_name`));
  }
  if (not_id !== undefined) return new Not(principal(not_id, `${where}.not_id`));
  if (source_ip !== undefined) return address(source_ip, source, `${where}.source_ip`);
  if (direct_remote_ip !== undefined) return address(direct_remote_ip, direct, `${where}.direct_remote_ip`);
  if (remote_ip !== undefined) return address(remote_ip, remote, `${where}.remote_ip`);
  if (config.filter_state !== undefined) return filterState(config.filter_state, `${where}.filter_state`);
  return common(config, where);
}

function common(config: Permission | Principal, where: string): Condition {
  const { any, header, metadata, sourced_metadata: sourced, url_path } = config;
  if (metadata !== undefined) return new MetadataCondition(new MetadataRule(metadata, `${where}.metadata`), false);
  if (sourced !== undefined) {
    const rule = new MetadataRule(sourced.metadata_matcher!, `${where}.sourced_metadata.metadata_matcher`);
    return new MetadataCondition(rule, sourced.metadata_source === 'ROUTE');
  }
  if (header !== undefined) return new HeaderCondition(new HeaderRule(header, `${where}.header`));
  if (url_path?.path !== undefined)
    return new PathCondition(compileStringMatcher(url_path.path, `${where}.url_path.path`));
  if (any === true) return ALWAYS;
  throw new BatonError('CONFIG_INVALID', 'it has no condition: write `any: true` if that is meant', { where });
}

function filterState({ address_match, key = '', string_match }: FilterStateMatcher, where: string): Condition {
  if (string_match !== undefined) {
    const rule = compileStringMatcher(string_match, `${where}.string_match`);
    return new FilterStateCondition(key, (text) => rule.matchesText(text));
  }
  const ranges = (address_match?.ranges ?? []).map((range, index) =>
    rangeOf(range, `${where}.address_match.ranges[${index}]`),
  );
  const isInverted = address_match?.invert_match ?? false;
  return new FilterStateCondition(key, (text) => {
    const ip = parseIp(text);
    return ip !== undefined && ranges.some((range) => isInRange(range, ip)) !== isInverted;
  });
}

const MAX_PREFIX_BITS = 128;

function address(config: CidrRange, addressOf: AddressOf, where: string): Condition {
  return new AddressCondition(rangeOf(config, where), addressOf);
}

function rangeOf({ address_prefix = '', prefix_len = 0 }: CidrRange, where: string): IpRange {
  const range = ipRange(address_prefix, Math.min(prefix_len, MAX_PREFIX_BITS));
  if (range !== undefined) return range;
  throw new BatonError('CONFIG_INVALID', `malformed IP address: ${address_prefix}`, {
    where: `${where}.address_prefix`,
  });
}
