// `npm run fuzz`: mutated traffic against a running server, TLS connections in both directions, TLS secrets of a management server,
// expressions, first bytes of connections for listener filters, names of hosts, HTTP/2 connections to the codec, gRPC messages, JSON bodies,
// tokens, cookies of sessions, logins, trace contexts, answers of proxies, redirects, databases of places, the gRPC-JSON transcoder, Wasm modules, its admin port and
// the sockets of its hot restart, then mutated configurations, for a bounded time.
// expressions, first bytes of connections for listener filters, names of hosts, HTTP/2 connections to the codec, gRPC messages, JSON bodies, tokens, logins,
// trace contexts, answers of proxies, redirects, databases of places, the gRPC-JSON transcoder, Wasm modules, xdstp names, its admin port and the sockets of its hot restart, then mutated configurations, for a
// bounded time.
//
// Exits with status 1 if a worker died, an exception was caught, a stack trace was printed or a resource was leaked, and prints
// the preceding inputs. The same seed produces the same mutations, but traffic may be sent in another order.

import minimist from 'minimist';
import { Random } from '../src/common/random.js';
import { fuzzAdmin } from './fuzz/admin.js';
import { fuzzConfigurations } from './fuzz/configurations.js';
import { fuzzDatabases } from './fuzz/databases.js';
import { fuzzDnsQueries } from './fuzz/dns-queries.js';
import { fuzzExpressions } from './fuzz/expressions.js';
import { fuzzFirstBytes } from './fuzz/first-bytes.js';
import { fuzzGrpc } from './fuzz/grpc.js';
import { fuzzHostNames } from './fuzz/host-names.js';
import { fuzzHttpCaches } from './fuzz/http-caches.js';
import { fuzzHttp2 } from './fuzz/http2.js';
import { fuzzJsonBodies } from './fuzz/json-bodies.js';
import { fuzzLogins } from './fuzz/logins.js';
import { fuzzProxyAnswers } from './fuzz/proxy-answers.js';
import { fuzzRedirects } from './fuzz/redirects.js';
import { fuzzResp } from './fuzz/resp.js';
import { fuzzRestart } from './fuzz/restart.js';
import { Finding, Scope } from './fuzz/scope.js';
import { fuzzSecrets } from './fuzz/secrets.js';
import { fuzzSessionCookies } from './fuzz/session-cookies.js';
import { fuzzTls } from './fuzz/tls.js';
import { fuzzTokens } from './fuzz/tokens.js';
import { fuzzTraceContexts } from './fuzz/trace-contexts.js';
import { fuzzTraffic } from './fuzz/traffic.js';
import { fuzzTranscoder } from './fuzz/transcoder.js';
import { fuzzTrustBundles } from './fuzz/trust-bundles.js';
import { fuzzWasmModules } from './fuzz/wasm-modules.js';
import { fuzzXdstpNames } from './fuzz/xdstp-names.js';

const USAGE = `npm run fuzz -- [options]

  --seconds=N           the duration, divided equally among the targets (default 60)
  --seed=N              repeats a run (default: random)
  --only=traffic|tls|secrets|expressions|first-bytes|host-names|dns-queries|http2|grpc|json-bodies|transcoder|tokens|session-cookies|http-caches|logins|trace-contexts|proxy-answers|redirects|databases|resp|wasm-modules|admin|restart|configurations|xdstp-names|trust-bundles
`;

const { seconds, seed, only, help } = minimist(process.argv.slice(2), {
  string: ['only'],
  boolean: ['help'],
  default: { seconds: 60, seed: Math.floor(Math.random() * 2 ** 31) },
});

if (help) process.stdout.write(USAGE);
else await run(Number(seconds), Number(seed), only);

async function run(seconds: number, seed: number, only: string | undefined): Promise<void> {
  console.log(`seed ${seed}, ${seconds} s`);
  const targets = [
    { name: 'traffic', fuzz: fuzzTraffic },
    { name: 'tls', fuzz: fuzzTls },
    { name: 'secrets', fuzz: fuzzSecrets },
    { name: 'expressions', fuzz: fuzzExpressions },
    { name: 'first-bytes', fuzz: fuzzFirstBytes },
    { name: 'host-names', fuzz: fuzzHostNames },
    { name: 'dns-queries', fuzz: fuzzDnsQueries },
    { name: 'http2', fuzz: fuzzHttp2 },
    { name: 'grpc', fuzz: fuzzGrpc },
    { name: 'json-bodies', fuzz: fuzzJsonBodies },
    { name: 'tokens', fuzz: fuzzTokens },
    { name: 'session-cookies', fuzz: fuzzSessionCookies },
    { name: 'http-caches', fuzz: fuzzHttpCaches },
    { name: 'logins', fuzz: fuzzLogins },
    { name: 'trace-contexts', fuzz: fuzzTraceContexts },
    { name: 'proxy-answers', fuzz: fuzzProxyAnswers },
    { name: 'redirects', fuzz: fuzzRedirects },
    { name: 'databases', fuzz: fuzzDatabases },
    { name: 'transcoder', fuzz: fuzzTranscoder },
    { name: 'resp', fuzz: fuzzResp },
    { name: 'wasm-modules', fuzz: fuzzWasmModules },
    { name: 'xdstp-names', fuzz: fuzzXdstpNames },
    { name: 'trust-bundles', fuzz: fuzzTrustBundles },
    { name: 'admin', fuzz: fuzzAdmin },
    { name: 'restart', fuzz: fuzzRestart },
    { name: 'configurations', fuzz: fuzzConfigurations },
  ].filter(({ name }) => only === undefined || only === name);
  for (const { name, fuzz } of targets) {
    const scope = new Scope();
    try {
      const summary = await fuzz(scope, new Random(seed), (seconds * 1000) / targets.length);
      console.log(`${name}: ${summary}`);
    } catch (error) {
      if (!(error instanceof Finding)) throw error;
      console.error(`${name}: ${error.message}\nnpm run fuzz -- --only=${name} --seed=${seed} --seconds=${seconds}`);
      process.exitCode = 1;
    } finally {
      await scope.end();
    }
  }
}
