// Passes requests with a known key, and tells hosts whose it is. The cluster answers GET /keys/<key> with {"consumer": "ann"}.

import { defineHttpFilter } from 'baton';

interface Config {
  readonly cluster: string;
}

export default defineHttpFilter<Config>({
  config(given) {
    const { cluster } = given as Partial<Config>;
    if (typeof cluster !== 'string') throw new Error('cluster: the name of the cluster that knows the keys is missing');
    return { cluster };
  },

  async onRequest(request, ctx) {
    const key = request.headers.get('x-api-key');
    if (key === undefined) return ctx.reply(401, 'a key is needed\n');
    const answer = await ctx.fetch(ctx.config.cluster, `/keys/${encodeURIComponent(key)}`, { timeoutMs: 500 });
    if (!answer.ok) return ctx.reply(403, 'this key is not known\n');
    const { consumer } = answer.json() as { consumer: string };
    request.headers.delete('x-api-key');
    request.headers.set('x-consumer', consumer);
    ctx.metadata.set('api-key', { consumer });
    ctx.stats.count('allowed');
    return undefined;
  },
});
