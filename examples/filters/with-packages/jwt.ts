// Passes requests with a valid JWT, and tells hosts whose it is. The keys (JWKS) come from a cluster, and are asked for every five minutes.

import { defineHttpFilter, type HttpContext } from 'baton';
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from 'jose';

interface Config {
  readonly issuer: string;
  readonly audience: string;
  /** The cluster that has the keys, and their path. */
  readonly cluster: string;
  readonly path: string;
}

type Keys = ReturnType<typeof createLocalJWKSet>;

const MAX_AGE_MS = 5 * 60_000;

/** Of this worker, by cluster and path: the filter may be configured several times. A promise: requests that come together ask once. */
const known = new Map<string, { readonly since: number; readonly set: Promise<Keys> }>();

export default defineHttpFilter<Config>({
  config(given) {
    const config = given as Partial<Config>;
    for (const name of ['issuer', 'audience', 'cluster', 'path'] as const)
      if (typeof config[name] !== 'string') throw new Error(`${name} is missing`);
    return config as Config;
  },

  async onRequest(request, ctx) {
    request.headers.delete('x-user');
    const [, token] = /^Bearer (\S+)$/i.exec(request.headers.get('authorization') ?? '') ?? [];
    if (token === undefined) return refuse(ctx, 'a token is needed');
    const { audience, issuer } = ctx.config;
    // If the keys cannot be had, this throws, and the client gets 500: nothing passes unchecked.
    const set = await currentKeys(ctx);
    try {
      const { payload } = await jwtVerify(token, set, { issuer, audience });
      request.headers.set('x-user', payload.sub ?? '');
      ctx.metadata.set('jwt', { sub: payload.sub });
    } catch (error) {
      if (!(error instanceof errors.JOSEError)) throw error;
      ctx.stats.count('refused');
      return refuse(ctx, 'this token is not valid');
    }
    return undefined;
  },
});

function currentKeys(ctx: HttpContext<Config>): Promise<Keys> {
  const { cluster, path } = ctx.config;
  const place = `${cluster} ${path}`;
  const keys = known.get(place);
  if (keys !== undefined && Date.now() - keys.since <= MAX_AGE_MS) return keys.set;
  const set = fetchKeys(ctx);
  known.set(place, { since: Date.now(), set });
  set.catch(() => known.delete(place));
  return set;
}

async function fetchKeys(ctx: HttpContext<Config>): Promise<Keys> {
  const { cluster, path } = ctx.config;
  // Other requests wait for the answer too: it must not end with this one.
  const answer = await ctx.fetch(cluster, path, { keepalive: true });
  if (!answer.ok) throw new Error(`the keys were answered with ${answer.status}`);
  return createLocalJWKSet(answer.json() as JSONWebKeySet);
}

function refuse(ctx: HttpContext<Config>, why: string) {
  return ctx.reply(401, `${why}\n`, { 'www-authenticate': 'Bearer' });
}
