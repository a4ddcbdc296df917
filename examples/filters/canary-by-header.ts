// Sends a request to the canary cluster if its header says so, or by chance: the runtime value `canary.percent` sets how often.

import { defineHttpFilter } from 'baton';

export default defineHttpFilter<{ readonly cluster: string }>({
  onRequest(request, ctx) {
    const percent = ctx.runtime.number('canary.percent', 0);
    const isChosen = request.headers.get('x-canary') === 'true' || Math.random() * 100 < percent;
    request.headers.delete('x-canary');
    if (!isChosen) return;
    ctx.setCluster(ctx.config.cluster);
    ctx.stats.count('canary');
  },
});
