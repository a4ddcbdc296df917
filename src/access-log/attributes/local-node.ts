// The node that xds.node describes: this server, as management servers see it.

import type { CelMessage } from '../../cel/values.js';
import type { Node } from '../../config/generated/api.js';
import { nodeMessage } from './messages.js';

let node: CelMessage = nodeMessage({});

/** Sets the node of this thread, once at its start. */
export function setLocalNode(own: Node): void {
  node = nodeMessage(own);
}

export function localNode(): CelMessage {
  return node;
}
