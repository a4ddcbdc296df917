// Replaces addresses in HTML pages, such as those of hosts by the public one.

import { defineHttpFilter } from 'baton';

export default defineHttpFilter<{ readonly from: string; readonly to: string }>({
  onRequest(request) {
    // A compressed page could not be searched.
    request.headers.delete('accept-encoding');
  },

  async onResponse(response, ctx) {
    if (response.headers.get('content-type')?.startsWith('text/html') !== true) return;
    const { from, to } = ctx.config;
    response.setBody((await response.text()).replaceAll(from, to));
  },
});
