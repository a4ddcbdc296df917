// Before language models: asks another provider when the first one fails or is overloaded. The other one's answer is not streamed, and
// has at most 64 KiB.

import { defineHttpFilter } from 'baton';

interface Config {
  readonly cluster: string;
  readonly host: string;
  /** The other provider's name of the model. */
  readonly model: string;
  readonly timeoutMs: number;
}

export default defineHttpFilter<Config>({
  async onRequest(request, ctx) {
    if (request.method !== 'POST') return;
    ctx.state['path'] = request.path;
    ctx.state['body'] = await request.json();
  },

  async onResponse(response, ctx) {
    const body = ctx.state['body'] as Record<string, unknown> | undefined;
    if (body === undefined || (response.status < 500 && response.status !== 429)) return undefined;
    ctx.stats.count('fallbacks');
    const { cluster, host, model, timeoutMs } = ctx.config;
    const answer = await ctx.fetch(cluster, ctx.state['path'] as string, {
      headers: { host, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, model, stream: false }),
      timeoutMs,
    });
    return ctx.reply(answer.status, answer.bytes(), { 'content-type': 'application/json', 'x-provider': cluster });
  },
});
