// Where a new version of a listener gets its sockets from: those that another version has are its own from then on, so that no
// connection is refused between them.

import { shownName } from '../../../common/text/shown.js';
import type { Listener } from '../../../config/generated/api.js';
import { type Address, addressText } from '../../../io/addresses/address.js';
import { getLogger } from '../../../log/logger.js';
import type { InheritedSocket, InheritedSockets } from '../version/inherited-sockets.js';
import {
  type FormerSockets,
  isV6Only,
  ListenError,
  listenAddress,
  socketTraits,
  wantsReusePort,
} from '../version/listen-sockets.js';
import { bindsToPort, type PrimaryListener } from '../version/primary-listener.js';
import { isAt } from './addresses.js';

export interface SocketSource {
  /** What it takes over. */
  readonly former: FormerSockets | undefined;
  /** Where it binds further sockets beside those of another version; undefined: where it is configured. */
  readonly address: Address | undefined;
}

const logger = getLogger('config');

/**
 * `owners` are versions whose sockets may be taken, those of the same listener first. Throws ListenError when one of them keeps
 * the address, and cannot share it.
 */
export function socketSource(
  name: string,
  config: Listener,
  owners: Iterable<PrimaryListener>,
  parent: InheritedSockets | undefined,
): SocketSource {
  if (!bindsToPort(config)) return { former: undefined, address: undefined };
  const address = listenAddress(config.address);
  const wanted = addressText(address);
  for (const owner of owners) {
    if (owner.sharesSockets && isAt(owner, name, wanted)) return sourceOf(owner, config);
  }
  const traits = socketTraits(config);
  const inherited = parent?.takeListener({ name: config.name ?? '', address, traits, v6Only: isV6Only(config) });
  return { former: inherited && formerOf(inherited), address: undefined };
}

function formerOf({ address, fds, id, isReusePort }: InheritedSocket): FormerSockets {
  return { address, fds, isReusePort, mode: 0, lineage: { ofParent: { id, count: fds.length } } };
}

function sourceOf(owner: PrimaryListener, config: Listener): SocketSource {
  const { address, isReusePort } = owner;
  const wantsSiblings = wantsReusePort(config);
  if (socketTraits(owner.config) === socketTraits(config)) {
    if (wantsSiblings && !isReusePort) {
      logger.info(
        `listener '${shownName(config.name ?? '')}' goes on with one socket for all workers: ${addressText(address)} was bound without ` +
          'enable_reuse_port, and is bound anew only after a restart',
      );
    }
    return { former: owner.shareSockets(), address: undefined };
  }
  // The kernel gives connections to both, until the other one has ended.
  if (isReusePort && wantsSiblings) return { former: undefined, address };
  throw new ListenError(
    `cannot listen on ${addressText(address)}: it is bound with other values of freebind, transparent or ipv4_compat, and ` +
      'without enable_reuse_port it cannot be bound twice; remove the listener first, and add it then',
  );
}
