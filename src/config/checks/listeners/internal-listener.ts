// Internal listeners: they have no socket, so no address and no options of sockets.

import type { Listener } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';

/** Fields of sockets that Envoy refuses too; the others have no effect there either. */
const OF_SOCKETS = ['enable_reuse_port', 'freebind', 'transparent', 'tcp_backlog_size'] as const;

/** Reports what an internal listener cannot have, in Envoy's words. */
export function checkInternalListener(
  listener: Listener,
  path: Path,
  { permitsInternal, problems }: CheckContext,
): void {
  if (listener.internal_listener === undefined) {
    if (listener.address?.envoy_internal_address === undefined) return;
    const text = 'use internal_listener field instead of address for internal listeners';
    return problems.error([...path, 'address', 'envoy_internal_address'], text, 'key');
  }
  if (!permitsInternal) {
    const remedy = 'add envoy.bootstrap.internal_listener to bootstrap_extensions';
    problems.error(
      [...path, 'internal_listener'],
      `InternalListener bootstrap extension is mandatory: ${remedy}`,
      'key',
    );
  }
  if (listener.address !== undefined) {
    const text = 'address should not be used when an internal listener config is provided';
    problems.error([...path, 'address'], text, 'key');
  }
  for (const field of OF_SOCKETS) {
    if (listener[field] === undefined) continue;
    problems.error([...path, field], 'unsupported tcp listener feature: an internal listener has no socket', 'key');
  }
  if (listener.socket_options === undefined) return;
  problems.error([...path, 'socket_options'], 'an internal listener does not support socket options', 'key');
}
