// Sends a copy of a share of all requests to another cluster, whose answers nobody gets. The runtime value `shadow.percent` is the share.

import { defineHttpFilter } from 'baton';

/** Larger bodies are not copied. */
const MAX_BYTES = 64 * 1024;

export default defineHttpFilter<{ readonly cluster: string }>({
  async onRequest(request, ctx) {
    if (Math.random() * 100 >= ctx.runtime.number('shadow.percent', 100)) return;
    const length = Number(request.headers.get('content-length') ?? 0);
    if (request.hasBody && !(length > 0 && length <= MAX_BYTES)) return;
    const { method, path } = request;
    const headers: Record<string, string> = { host: `${request.host}-shadow` };
    const type = request.headers.get('content-type');
    if (type !== undefined) headers['content-type'] = type;
    const body = request.hasBody ? await request.bytes() : undefined;
    // Not awaited, and not ended with the request.
    ctx.fetch(ctx.config.cluster, path, { method, headers, body, keepalive: true }).then(
      (answer) => ctx.stats.count(`status_${answer.status}`),
      () => ctx.stats.count('failed'),
    );
  },
});
