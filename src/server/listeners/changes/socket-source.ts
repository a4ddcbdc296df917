// The source of a new version's sockets. It takes over those of an earlier version, so that no connection is refused between the
// two.

import { shownName } from '../../../common/text/shown.js';
import { bindsToPort } from '../../../config/fields/binds-to-port.js';
import { isUdp } from '../../../config/fields/udp.js';
import type { Listener } from '../../../config/generated/api.js';
import { type Address, addressText } from '../../../io/addresses/address.js';
import { getLogger } from '../../../log/logger.js';
import { claimText } from '../version/claimed-address.js';
import type { InheritedSocket, InheritedSockets } from '../version/inherited-sockets.js';
import {
  isV6Only,
  ListenError,
  listenerAddress,
  type ReusedSockets,
  socketTraits,
  usesReusePort,
} from '../version/listen-sockets.js';
import type { PrimaryListener } from '../version/primary-listener.js';
import { isAt } from './addresses.js';

export interface SocketSource {
  /** The sockets that it takes over. */
  readonly reused: ReusedSockets | undefined;
  /** The address for further sockets beside those of another version; undefined for the configured address. */
  readonly address: Address | undefined;
}

const logger = getLogger('config');

/**
 * `owners`: versions whose sockets may be taken, those of the same listener first. Throws ListenError when one of them keeps the
 * address and cannot share it.
 */
export function socketSource(
  name: string,
  config: Listener,
  owners: Iterable<PrimaryListener>,
  parent: InheritedSockets | undefined,
): SocketSource {
  if (!bindsToPort(config)) return { reused: undefined, address: undefined };
  const address = listenerAddress(config);
  const wanted = claimText(config, address);
  for (const owner of owners) {
    if (owner.sharesSockets && isAt(owner, name, wanted)) return fromVersion(owner, config);
  }
  const traits = socketTraits(config);
  const inherited = parent?.takeListener({
    name: config.name ?? '',
    address,
    traits,
    v6Only: isV6Only(config),
    isDatagram: isUdp(config),
  });
  return { reused: inherited && fromParent(inherited), address: undefined };
}

function fromParent({ address, fds, id, isReusePort }: InheritedSocket): ReusedSockets {
  return { address, fds, isReusePort, mode: 0, lineage: { ofParent: { id, count: fds.length } } };
}

function fromVersion(owner: PrimaryListener, config: Listener): SocketSource {
  const { address, isReusePort } = owner;
  const reusesPort = usesReusePort(config);
  if (socketTraits(owner.config) === socketTraits(config)) {
    if (reusesPort && !isReusePort) {
      logger.info(
        `listener '${shownName(config.name ?? '')}' keeps one socket for all workers: ${addressText(address)} was bound without ` +
          'enable_reuse_port, and can only be bound again after a restart',
      );
    }
    return { reused: owner.shareSockets(), address: undefined };
  }
  // The kernel gives connections to both until the other version has stopped.
  if (isReusePort && reusesPort) return { reused: undefined, address };
  throw new ListenError(
    `cannot listen on ${addressText(address)}: it is bound with other socket options, freebind, transparent or ipv4_compat, and ` +
      'without enable_reuse_port it cannot be bound twice; remove the listener first, then add it',
  );
}
