// What a GrpcService can ask for, beyond the table of implemented fields.

import type { Report } from '../config/extension.js';
import type { GrpcService } from '../config/generated/api.js';

/** Reports what cannot be obeyed; `path` is that of the service in its extension's configuration. */
export function checkGrpcService(service: GrpcService | undefined, path: string, report: Report): void {
  service?.initial_metadata?.forEach(({ key = '' }, index) => {
    const at = `${path}.initial_metadata[${index}].key`;
    if (!/^[0-9a-z_.-]+$/i.test(key)) report(at, `'${key}' cannot be a key of gRPC metadata`);
    else if (/-bin$/i.test(key)) report(at, 'binary metadata (-bin) is not implemented');
    else if (/^grpc-/i.test(key)) report(at, `keys that begin with 'grpc-' are the protocol's own`);
  });
  const target = service?.google_grpc?.target_uri;
  if (target !== undefined && !/^(dns:|unix:|ipv4:|ipv6:)|^[^:/]+:[0-9]+$/.test(target)) {
    report(
      `${path}.google_grpc.target_uri`,
      `'${target}' is no target: give host:port, or a dns:, unix:, ipv4: or ipv6: URI`,
    );
  }
}
