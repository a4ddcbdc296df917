// A Baton, or an Envoy, with one HTTPS listener that answers every request itself.

import { type BatonProcess, bootstrap, type Config, startBaton, type Teardown } from '../harness/index.js';
import { httpsListener } from './contexts.js';

export const MANAGER: Config = {
  codec_type: 'HTTP1',
  route_config: {
    virtual_hosts: [
      {
        name: 'all',
        domains: ['*'],
        routes: [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'secure' } } }],
      },
    ],
  },
};

export interface HttpsProxy {
  readonly baton: BatonProcess;
  readonly port: number;
  /** Prefix of the listener's TLS stats. */
  readonly ssl: string;
}

/** Starts a listener `main` with this transport socket. `program`: options of startBaton(). */
export async function startHttps(t: Teardown, program: object, tls: Config, chain: Config = {}): Promise<HttpsProxy> {
  const listener = { ...httpsListener('main', tls, MANAGER, chain), stat_prefix: 'main' };
  const baton = await startBaton(t, { ...program, config: bootstrap({ listeners: [listener], clusters: [] }) });
  return { baton, port: await baton.listenerPort('main'), ssl: 'listener.main.ssl.' };
}
