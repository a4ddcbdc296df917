// Sends clients to a cluster by a cookie, and gives new clients one of the variants.

import { defineHttpFilter } from 'baton';

interface Config {
  /** Clusters by the value of the cookie. */
  readonly variants: Readonly<Record<string, string>>;
}

export default defineHttpFilter<Config>({
  onRequest(request, ctx) {
    const { variants } = ctx.config;
    let variant = request.cookie('variant');
    if (variant === undefined || !Object.hasOwn(variants, variant)) {
      const names = Object.keys(variants);
      variant = names[Math.floor(Math.random() * names.length)]!;
      ctx.state['isNew'] = true;
    }
    ctx.state['variant'] = variant;
    ctx.setCluster(variants[variant]!);
  },

  onResponse(response, ctx) {
    if (ctx.state['isNew'] === true)
      response.headers.append('set-cookie', `variant=${ctx.state['variant']}; Path=/; Max-Age=2592000; SameSite=Lax`);
  },
});
