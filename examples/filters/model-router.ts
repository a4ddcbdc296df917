// Before language models: chooses the cluster by the `model` of the JSON body, and counts the tokens of streamed answers.

import { defineHttpFilter } from 'baton';

interface Config {
  /** Clusters by model. */
  readonly models: Readonly<Record<string, string>>;
}

export default defineHttpFilter<Config>({
  async onRequest(request, ctx) {
    const { model } = (await request.json()) as { model?: string };
    const { models } = ctx.config;
    if (model === undefined || !Object.hasOwn(models, model)) return ctx.reply(404, `there is no model '${model}'\n`);
    ctx.setCluster(models[model]!);
    ctx.metadata.set('model', { name: model });
    return undefined;
  },

  async onResponse(response, ctx) {
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return;
    let tokens = 0;
    let rest = '';
    // Each piece is sent on before the next one is read: the client waits for nothing.
    for await (const piece of response.body) {
      const lines = (rest + piece.text()).split('\n');
      rest = lines.pop()!;
      tokens += lines.filter((line) => line.startsWith('data: {')).length;
    }
    ctx.stats.count('tokens', tokens);
    ctx.metadata.set('model', { tokens });
  },
});
