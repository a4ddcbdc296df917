// Signs requests to hosts with a secret that both know: HMAC-SHA256 of the method, the path, the time and the body.

import { createHmac } from 'node:crypto';
import { defineHttpFilter } from 'baton';

interface Config {
  readonly key: string;
  /** The environment variable that has the secret: a configuration is no place for it. */
  readonly secretFrom: string;
}

export default defineHttpFilter<Config & { readonly secret: string }>({
  config(given) {
    const { key, secretFrom } = given as Config;
    const secret = process.env[secretFrom];
    if (!secret) throw new Error(`secretFrom: the environment variable ${secretFrom} is not set`);
    return { key, secretFrom, secret };
  },

  async onRequest(request, ctx) {
    const { key, secret } = ctx.config;
    const time = new Date().toISOString();
    const body = request.hasBody ? await request.bytes() : '';
    const signature = createHmac('sha256', secret)
      .update(`${request.method}\n${request.path}\n${time}\n`)
      .update(body)
      .digest('base64');
    request.headers.set('x-time', time);
    request.headers.set('authorization', `HMAC key="${key}", signature="${signature}"`);
  },
});
