// What a connection manager does to the head of a request before it finds the route, as far as that follows from its configuration.

import { StreamInfo } from '../../../access-log/stream/stream-info.js';
import type { HttpConnectionManager } from '../../../config/generated/api.js';
import type { Runtime } from '../../../runtime/runtime.js';
import type { LocalReply } from '../../filters/filter.js';
import { earlyMutations } from '../../headers/early-mutations.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { HostNormalizer } from '../../normalization/host-normalization.js';
import { PathNormalizer } from '../../normalization/path-normalization.js';

/**
 * Normalizes path and host, and applies early_header_mutation_extensions. Returns the answer to a request that gets no route.
 * @param localText the address that the client connected to
 * @param runtime absent: the configured values apply
 */
export function arrive(
  manager: HttpConnectionManager,
  head: HeaderBlock,
  localText: string,
  runtime?: Runtime,
): LocalReply | undefined {
  const answer = PathNormalizer.of(manager, runtime)?.apply(head);
  if (answer !== undefined) return answer;
  HostNormalizer.of(manager)?.apply(head, { localText });
  const info = new StreamInfo();
  info.requestHeaders = head;
  earlyMutations(manager.early_header_mutation_extensions, 'early_header_mutation_extensions')?.apply(head, info);
  return undefined;
}
