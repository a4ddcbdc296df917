// Specifiers of health discovery services for the fuzzing of gRPC messages: the clusters that are read from them.

import { encodeJson, loadMessages } from '../../src/config/schema/messages.js';
import { framed } from '../../src/grpc/message-reader.js';
import { readSpecifier, type Specifier } from '../../src/server/health-discovery/specifier.js';
import { Finding } from './scope.js';

const SPECIFIER = 'envoy.service.health.v3.HealthCheckSpecifier';
const CLUSTER = 'envoy.config.cluster.v3.Cluster';
const types = loadMessages(SPECIFIER, CLUSTER);

interface DecodedCluster {
  readonly name: string;
  readonly load_assignment: { readonly cluster_name: string };
}

/** Returns whether a message is a specifier. Throws a Finding when what is read from it is invalid. */
export function isSpecifier(message: Buffer): boolean {
  let specifier: Specifier;
  try {
    specifier = readSpecifier(message);
  } catch (error) {
    if (error instanceof TypeError) throw new Finding(`the specifier ${message.toString('hex')}: ${error.stack}`);
    return false;
  }
  const { clusters, intervalMs } = specifier;
  const isTimer = intervalMs >= 100 && intervalMs < 2 ** 31;
  const haveOwnNames = new Set(clusters.map(({ name }) => name)).size === clusters.length;
  if (!isTimer || !haveOwnNames || !clusters.every(isNamed))
    throw new Finding(`the specifier ${message.toString('hex')} is misread: every ${intervalMs} ms`);
  return true;
}

/** Returns whether the bytes are a cluster of that name. Invalid parts of it were only copied, and are refused later. */
function isNamed({ name, value }: Specifier['clusters'][number]): boolean {
  let cluster: DecodedCluster;
  try {
    cluster = types[CLUSTER].decode(value) as unknown as DecodedCluster;
  } catch {
    return true;
  }
  return cluster.name === name && cluster.load_assignment.cluster_name === name;
}

/** Returns specifiers to mutate, with their prefixes. */
export function specifiers(): Buffer[] {
  const address = { socket_address: { address: '127.0.0.1', port_value: 80 } };
  const check = {
    ...{ timeout: '1s', interval: '1s', unhealthy_threshold: 1, healthy_threshold: 1 },
    ...{ http_health_check: { path: '/' }, transport_socket_match_criteria: { a: [1, { b: null }] } },
  };
  const cluster = {
    cluster_name: 'a',
    health_checks: [check],
    locality_endpoints: [
      { locality: { region: 'r' }, endpoints: [{ address, health_check_config: { port_value: 1 } }, { address }] },
    ],
    transport_socket_matches: [{ name: 'm', match: { a: true } }],
    upstream_bind_config: { source_address: { address: '127.0.0.1', port_value: 0 } },
  };
  return [
    { interval: '1.5s', cluster_health_checks: [cluster, { ...cluster, cluster_name: 'b' }, cluster] },
    { interval: '-1s', cluster_health_checks: [{}] },
  ].map((specifier) => Buffer.from(framed(encodeJson(types[SPECIFIER], specifier))));
}
