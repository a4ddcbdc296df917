// GET /listeners: names and addresses of listeners.

import { addressText } from '../../../io/addresses/address.js';
import type { AdminHandler } from '../../admin-handler.js';
import type { ListenerView } from '../../admin-services.js';
import { addressJson, JSON_TYPE, type JsonObject, prettyJson, prettyList } from '../../json.js';
import { textPieces } from '../../stats/text-pieces.js';

export const listeners: AdminHandler = {
  path: '/listeners',
  mutates: false,
  help: 'print listener info',
  parameters: [{ name: 'format', help: 'File format to use', choices: ['text', 'json'] }],
  handle({ query }, services) {
    // An unknown format means text, for compatibility with scripts.
    if (query.get('format') !== 'json') return { body: textPieces(listenersText(services.listeners())) };
    return { contentType: JSON_TYPE, body: textPieces(listenersJson(services.listeners())) };
  },
};

function* listenersText(views: Iterable<ListenerView>): Generator<string, void> {
  for (const { name, addresses } of views) for (const address of addresses) yield `${name}::${addressText(address)}\n`;
}

/** envoy.admin.v3.Listeners */
function* listenersJson(views: Iterable<ListenerView>): Generator<string, void> {
  yield* prettyList({}, 'listener_statuses', elements(views));
  yield '\n';
}

function* elements(views: Iterable<ListenerView>): Generator<[string], void> {
  for (const view of views) yield [prettyJson(listenerJson(view), 2)];
}

function listenerJson({ name, addresses }: ListenerView): JsonObject {
  const [main, ...others] = addresses;
  return {
    name,
    ...(main !== undefined && { local_address: addressJson(main) }),
    ...(others.length > 0 && { additional_local_addresses: others.map(addressJson) }),
  };
}
