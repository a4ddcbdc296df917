// An endpoint of an extension as one of the admin interface.

import type { AdminHandler } from '../../admin/admin-handler.js';
import type { PostEndpoint } from '../../extensions/factories.js';

export function postEndpoint(endpoint: PostEndpoint): AdminHandler {
  return {
    path: endpoint.path,
    mutates: true,
    help: endpoint.help,
    parameters: [],
    // Pieces come as traffic does.
    handle: async ({ body }) => {
      const answer = await endpoint.answer(body);
      return { ...answer, isEndless: typeof answer.body !== 'string' };
    },
  };
}
