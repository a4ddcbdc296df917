// Removes fields from JSON responses.

import { defineHttpFilter } from 'baton';

export default defineHttpFilter<{ readonly fields: readonly string[] }>({
  async onResponse(response, ctx) {
    if (response.headers.get('content-type')?.startsWith('application/json') !== true) return;
    const body = (await response.json()) as Record<string, unknown>;
    for (const field of ctx.config.fields) delete body[field];
    response.setBody(JSON.stringify(body));
  },
});
