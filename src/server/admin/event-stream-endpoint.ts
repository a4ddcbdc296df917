// Serves the event stream of a stats sink as an admin endpoint.

import type { AdminHandler } from '../../admin/admin-handler.js';
import type { EventStream } from '../../extensions/factories.js';

export function eventStreamEndpoint({ path, aliases, help, headers, open }: EventStream): AdminHandler {
  return {
    path,
    aliases,
    mutates: false,
    help,
    parameters: [],
    handle: () => ({ contentType: 'text/event-stream', headers, body: open(), isEndless: true }),
  };
}
