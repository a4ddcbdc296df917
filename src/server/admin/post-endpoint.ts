// Serves an endpoint of an extension as an admin endpoint.

import type { AdminHandler } from '../../admin/admin-handler.js';
import type { PostEndpoint } from '../../extensions/factories.js';

export function postEndpoint(endpoint: PostEndpoint): AdminHandler {
  return {
    path: endpoint.path,
    mutates: true,
    help: endpoint.help,
    parameters: [],
    // A streamed answer has no end: its pieces follow the traffic.
    handle: async ({ body }) => {
      const answer = await endpoint.answer(body);
      return { ...answer, isEndless: typeof answer.body !== 'string' };
    },
  };
}
