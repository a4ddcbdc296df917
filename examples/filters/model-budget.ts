// Before language models: a budget of tokens per key and minute. The answers say how many they have used.

import { defineHttpFilter } from 'baton';

interface Config {
  readonly tokensPerMinute: number;
}

interface Budget {
  readonly minute: number;
  used: number;
}

/** Keys are what clients send: their number must have a limit. */
const MAX_KEYS = 10_000;

/** Of this worker: with several workers, divide the budget, or keep it in a store that ctx.fetch() asks. */
const budgets = new Map<string, Budget>();

export default defineHttpFilter<Config>({
  onRequest(request, ctx) {
    const key = request.headers.get('authorization');
    if (key === undefined) return ctx.reply(401, 'a key is needed\n');
    const budget = budgetOf(key);
    if (budget.used >= ctx.config.tokensPerMinute) {
      ctx.stats.count('over_budget');
      return ctx.reply(429, 'the budget of this minute is used up\n', { 'retry-after': '60' });
    }
    ctx.state['budget'] = budget;
    return undefined;
  },

  async onResponse(response, ctx) {
    const budget = ctx.state['budget'] as Budget | undefined;
    // An earlier filter has answered.
    if (budget === undefined) return;
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('application/json')) return void (budget.used += tokensOf(await response.text()));
    if (!type.startsWith('text/event-stream')) return;
    let rest = '';
    for await (const piece of response.body) {
      const lines = (rest + piece.text()).split('\n');
      rest = lines.pop()!;
      // Only the last event has the usage.
      for (const line of lines) if (line.startsWith('data: {')) budget.used += tokensOf(line.slice(6));
    }
  },
});

function budgetOf(key: string): Budget {
  const minute = Math.floor(Date.now() / 60_000);
  let budget = budgets.get(key);
  if (budget?.minute !== minute) {
    budget = { minute, used: 0 };
    budgets.delete(key);
    budgets.set(key, budget);
    // The oldest entry: a map is in the order of its insertions.
    if (budgets.size > MAX_KEYS) budgets.delete(budgets.keys().next().value!);
  }
  return budget;
}

function tokensOf(json: string): number {
  const { usage } = JSON.parse(json) as { usage?: { total_tokens?: number } | null };
  return usage?.total_tokens ?? 0;
}
