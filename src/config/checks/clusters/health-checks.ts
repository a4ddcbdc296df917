// Health checks of clusters, beyond the schema.

import { CONNECTION_FIELDS } from '../../../common/text/connection-fields.js';
import { isFieldName } from '../../../common/text/header-names.js';
import { hostProtocol } from '../../fields/http-options.js';
import type {
  Cluster,
  Endpoint,
  HeaderValueOption,
  HealthCheck_GrpcHealthCheck,
  HealthCheck_HttpHealthCheck,
  HealthCheck_Payload,
  Int64Range,
} from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import { checkConnected, checkPipe, checkSocket, isPlainIp } from '../addresses.js';

/** A payload is sent in one turn. */
const MAX_PAYLOAD_BYTES = 64 * 1024;

/** Reports health check settings of a cluster that are not supported. */
export function checkHealthChecks(cluster: Cluster, path: Path, problems: Problems): void {
  const checks = cluster.health_checks ?? [];
  if (checks.length > 1) {
    problems.error(
      [...path, 'health_checks', 1],
      'multiple health checks are not supported: a cluster has one at most',
    );
  }
  if (checks.length === 0) checkUnused(cluster, path, problems);
  else checkReachable(cluster, path, problems);
  checks.forEach((check, index) => {
    const at = [...path, 'health_checks', index];
    for (const field of ['unhealthy_threshold', 'healthy_threshold'] as const) {
      if (check?.[field] === 0) problems.error([...at, field], 'it must be at least 1');
    }
    if (check?.http_health_check) {
      checkHttp(check.http_health_check, [...at, 'http_health_check'], problems);
    }
    if (check?.grpc_health_check !== undefined) {
      checkGrpc(check.grpc_health_check, cluster, [...at, 'grpc_health_check'], problems);
    }
    check?.tls_options?.alpn_protocols?.forEach((name, number) => {
      if (Buffer.byteLength(name) >= 1 && Buffer.byteLength(name) <= 255) return;
      problems.error([...at, 'tls_options', 'alpn_protocols', number], 'a protocol has a name of 1 to 255 bytes');
    });
    checkPayload(check?.tcp_health_check?.send, [...at, 'tcp_health_check', 'send'], problems);
    check?.tcp_health_check?.receive?.forEach((payload, number) => {
      checkPayload(payload, [...at, 'tcp_health_check', 'receive', number], problems);
    });
  });
}

/** Reports an endpoint that cannot be checked; `path`: the path of the endpoint. */
export function checkEndpointCheck(endpoint: Endpoint | undefined, path: Path, problems: Problems): void {
  const { address, port_value: port } = endpoint?.health_check_config ?? {};
  const at = [...path, 'health_check_config'];
  if (address !== undefined) {
    checkConnected(address.socket_address, [...at, 'address', 'socket_address'], problems);
    checkPipe(address.pipe, [...at, 'address', 'pipe'], problems);
    checkSocket(address, 'a health check', [...at, 'address'], problems);
    const host = address.socket_address?.address;
    if (host !== undefined && !isPlainIp(host)) {
      problems.error([...at, 'address', 'socket_address', 'address'], `malformed IP address: ${host}`);
    }
  }
  const checked = address ?? endpoint?.address;
  if (checked?.pipe !== undefined && port)
    problems.error([...at, 'port_value'], 'a Unix socket has no port: leave it out', 'key');
  // In Envoy's words.
  if (checked?.envoy_internal_address !== undefined && port)
    problems.error([...at, 'port_value'], 'non-zero port for non-IP address: an internal listener has none', 'key');
}

/** Reports hosts that cannot be checked, which Envoy 1.40 ends with an assertion for. */
function checkReachable({ load_assignment: assignment }: Cluster, path: Path, problems: Problems): void {
  assignment?.endpoints?.forEach((locality, group) => {
    locality?.lb_endpoints?.forEach((lb, index) => {
      const { address, health_check_config: own } = lb?.endpoint ?? {};
      if (!address?.envoy_internal_address || own?.address || own?.disable_active_health_check) return;
      const at = [...path, 'load_assignment', 'endpoints', group, 'lb_endpoints', index, 'endpoint', 'address'];
      const what = 'health checks cannot reach internal listeners, which only workers connect to';
      problems.error([...at, 'envoy_internal_address'], `${what}: set disable_active_health_check`, 'key');
    });
  });
}

/** Reports health check options of a cluster without health checks. */
function checkUnused(cluster: Cluster, path: Path, problems: Problems): void {
  if (!cluster.common_lb_config?.ignore_new_hosts_until_first_hc) return;
  const what = 'it has no effect without health_checks: leave it out';
  problems.error([...path, 'common_lb_config', 'ignore_new_hosts_until_first_hc'], what, 'key');
}

function checkHttp(config: HealthCheck_HttpHealthCheck, path: Path, problems: Problems): void {
  const { host = '', path: target = '' } = config;
  if (target !== '' && !/^\/[!"$-~]*$/.test(target)) {
    problems.error(
      [...path, 'path'],
      `'${target}' is not a valid path: it must begin with '/' and contain no space, control character or '#'`,
    );
  }
  if (!/^[!-~]*$/.test(host)) problems.error([...path, 'host'], `'${host}' is not a valid host`);
  const { method = 'GET' } = config;
  if (config.send !== undefined && !METHODS_WITH_BODY.has(method)) {
    const message = `HTTP health check cannot specify a request payload with method '${method}': it must be POST, PUT, PATCH or OPTIONS`;
    problems.error([...path, 'send'], message, 'key');
  }
  checkPayload(config.send, [...path, 'send'], problems);
  config.receive?.forEach((payload, index) => {
    checkPayload(payload, [...path, 'receive', index], problems);
  });
  for (const field of ['expected_statuses', 'retriable_statuses'] as const) {
    config[field]?.forEach((range, index) => {
      checkRange(range, [...path, field, index], problems);
    });
  }
  config.request_headers_to_add?.forEach((option, index) => {
    checkHeader(option, [...path, 'request_headers_to_add', index, 'header'], problems);
  });
  config.request_headers_to_remove?.forEach((name, index) => {
    const at = [...path, 'request_headers_to_remove', index];
    if (name.startsWith(':') || name.toLowerCase() === 'host') {
      problems.error(at, `'${name}' cannot be removed: every request needs it`);
    } else if (!isFieldName(name)) problems.error(at, `'${name}' is not a valid header name`);
  });
}

const METHODS_WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'OPTIONS']);

function checkGrpc(config: HealthCheck_GrpcHealthCheck, cluster: Cluster, path: Path, problems: Problems): void {
  const protocol = hostProtocol(cluster);
  if (protocol !== 'HTTP2' && protocol !== 'NEGOTIATED') {
    const why = `${cluster.name} cluster must support HTTP/2 for gRPC healthchecking: give it http2_protocol_options`;
    problems.error(path, why, 'key');
  }
  const { authority = '' } = config;
  if (!/^[!-~]*$/.test(authority)) problems.error([...path, 'authority'], `'${authority}' is not a valid host`);
  config.initial_metadata?.forEach((option, index) => {
    checkHeader(option, [...path, 'initial_metadata', index, 'header'], problems);
  });
}

function checkRange(range: Int64Range | undefined, path: Path, problems: Problems): void {
  const start = Number(range?.start ?? 0);
  const end = Number(range?.end ?? 0);
  if (start >= 100 && start < end && end <= 600) return;
  problems.error(
    path,
    `a range of statuses must start at 100 or above and end above its start and at 600 or below, found ${start} to ${end}`,
  );
}

function checkHeader(option: HeaderValueOption | undefined, path: Path, problems: Problems): void {
  const { key = '', value = '' } = option?.header ?? {};
  const name = key.toLowerCase();
  if (name === 'host' || name === ':authority') {
    return problems.error(
      [...path, 'key'],
      "set the host of a check in the field 'host' of http_health_check, or 'authority' of grpc_health_check",
    );
  }
  if (name.startsWith(':') || CONNECTION_FIELDS.has(name))
    return problems.error([...path, 'key'], `'${key}' is set by the check itself`);
  if (!isFieldName(key)) return problems.error([...path, 'key'], `'${key}' is not a valid header name`);
  if (!/%/.test(value.replaceAll('%%', ''))) return;
  problems.error(
    [...path, 'value'],
    'operators are not supported, since health checks have no client request: write %% for %',
  );
}

function checkPayload(payload: HealthCheck_Payload | undefined, path: Path, problems: Problems): void {
  const { binary, text } = payload ?? {};
  if (text !== undefined && !/^(?:[\da-f]{2})+$/i.test(text)) {
    return problems.error([...path, 'text'], 'it must be bytes in hexadecimal digits, such as 000000FF');
  }
  const length = text === undefined ? Buffer.from(binary ?? '', 'base64').length : text.length / 2;
  if (binary !== undefined && length === 0) problems.error([...path, 'binary'], 'it is empty: leave it out');
  if (length > MAX_PAYLOAD_BYTES) problems.error(path, `it has ${length} bytes, more than ${MAX_PAYLOAD_BYTES}`);
}
