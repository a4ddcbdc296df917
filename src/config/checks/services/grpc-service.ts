// Checks of GrpcService beyond the table of implemented fields.

import { durationMs } from '../../../common/time/duration.js';
import type { Report } from '../../catalog/extension.js';
import type { GrpcService } from '../../generated/api.js';

/** Reports unsupported settings of a service; `path`: its path in the configuration of the extension. */
export function checkGrpcService(service: GrpcService | undefined, path: string, report: Report): void {
  checkTarget(service, path, report);
  if (service?.envoy_grpc?.retry_policy !== undefined) {
    report(`${path}.envoy_grpc.retry_policy`, 'it applies only to streams of management servers');
  }
}

/** Like checkGrpcService(), for streams of management servers. */
export function checkManagementService(service: GrpcService | undefined, path: string, report: Report): void {
  checkTarget(service, path, report);
  service?.initial_metadata?.forEach(({ value = '' }, index) => {
    if (value.includes('%'))
      report(`${path}.initial_metadata[${index}].value`, 'operators (%…%) are not implemented for management servers');
  });
  if (service?.retry_policy !== undefined)
    report(`${path}.retry_policy`, 'streams of management servers are opened again by envoy_grpc.retry_policy');
  if (service?.timeout !== undefined) report(`${path}.timeout`, 'streams of management servers have no timeout');
  for (const field of ['num_retries', 'retry_on', 'retry_host_predicate'] as const) {
    if (service?.envoy_grpc?.retry_policy?.[field] !== undefined)
      report(`${path}.envoy_grpc.retry_policy.${field}`, 'streams of management servers are opened again without end');
  }
  const { base_interval: base, max_interval: max } = service?.envoy_grpc?.retry_policy?.retry_back_off ?? {};
  if (base !== undefined && max !== undefined && durationMs(max) < durationMs(base)) {
    const place = `${path}.envoy_grpc.retry_policy.retry_back_off.max_interval`;
    report(place, 'max_interval must be greater than or equal to the base_interval');
  }
}

function checkTarget(service: GrpcService | undefined, path: string, report: Report): void {
  service?.initial_metadata?.forEach(({ key = '', raw_value: raw, value = '' }, index) => {
    const at = `${path}.initial_metadata[${index}].key`;
    if (!/^[0-9a-z_.-]+$/i.test(key)) report(at, `'${key}' cannot be a key of gRPC metadata`);
    else if (/-bin$/i.test(key)) report(at, 'binary metadata (-bin) is not implemented');
    else if (/^grpc-/i.test(key)) report(at, `keys that begin with 'grpc-' are reserved for the protocol`);
    if (!/^[ -~]*$/.test(value))
      report(`${path}.initial_metadata[${index}].value`, 'gRPC metadata must be printable ASCII');
    if (raw !== undefined) report(`${path}.initial_metadata[${index}].raw_value`, "gRPC metadata is text: use 'value'");
  });
  const target = service?.google_grpc?.target_uri;
  const addresses = target === undefined || target.startsWith('unix:') ? [] : target.split(',');
  const wrong = addresses.find((address) => Number(/:(\d+)$/.exec(address)?.[1]) > MAX_PORT);
  if (wrong !== undefined) report(`${path}.google_grpc.target_uri`, `the port of '${wrong}' is above ${MAX_PORT}`);
  if (target !== undefined && !/^(dns:|unix:|ipv4:|ipv6:).+$|^[^:/\s]+:[0-9]+$/.test(target)) {
    report(
      `${path}.google_grpc.target_uri`,
      `'${target}' is not a valid target: use host:port, or a dns:, unix:, ipv4: or ipv6: URI`,
    );
  }
}

const MAX_PORT = 65_535;
