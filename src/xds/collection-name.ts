// The name under which a collection of resources is requested: its locator, with what Bootstrap.node_context_params adds of the node.

import { formatXdstp, parameterText, parseXdstp } from '../config/fields/xdstp-name.js';
import type { Bootstrap, Node } from '../config/generated/api.js';

/** `locator`: lds_resources_locator or cds_resources_locator, after the loader's checks. `node`: as management servers get it. */
export function collectionName(locator: string, { node_context_params: names = [] }: Bootstrap, node: Node): string {
  const name = parseXdstp(locator);
  if (name === undefined) throw new TypeError(`'${locator}' is not an xdstp name`);
  const parameters = new Map<string, string>();
  for (const each of names) {
    for (const [key, value] of partOf(node, each)) parameters.set(literalText(`xds.node.${key}`), literalText(value));
  }
  for (const [key, value] of name.parameters) parameters.set(key, value);
  return formatXdstp({ ...name, parameters });
}

/** Escapes text in which '%' begins no escape. */
function literalText(text: string): string {
  return parameterText(text.replaceAll('%', '%25'));
}

/** As in Envoy, other names add nothing. */
function partOf(node: Node, name: string): readonly (readonly [key: string, value: string])[] {
  const { locality = {}, metadata = {} } = node;
  switch (name) {
    case 'id':
      return [[name, node.id ?? '']];
    case 'cluster':
      return [[name, node.cluster ?? '']];
    case 'user_agent_name':
      return [[name, node.user_agent_name ?? '']];
    case 'user_agent_version':
      return [[name, node.user_agent_version ?? '']];
    case 'locality.region':
      return [[name, locality.region ?? '']];
    case 'locality.zone':
      return [[name, locality.zone ?? '']];
    case 'locality.sub_zone':
      return [[name, locality.sub_zone ?? '']];
    case 'metadata':
      return Object.entries(metadata).map(([key, value]) => [`metadata.${key}`, JSON.stringify(value)] as const);
    default:
      return [];
  }
}
