// Regular expressions whose program exceeds Envoy's limits.

import t from 'tap';
import { loadText, problemsOf } from './load-text.js';

/** Returns a route with this matcher and a static runtime layer. */
function withRegex(matcher: string, layer = '{}'): string {
  return `layered_runtime: { layers: [ { name: static, static_layer: ${layer} } ] }
static_resources:
  listeners:
  - name: l
    address: { pipe: { path: /tmp/l } }
    filter_chains:
    - filters:
      - name: hcm
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: x
          route_config: { virtual_hosts: [ { name: v, domains: [ "*" ], routes: [ { match: { safe_regex: ${matcher} }, redirect: {} } ] } ] }
          http_filters:
          - { name: router, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } }
`;
}

const KEY = 're2.max_program_size.error_level';

t.test(
  'a program of more than 100 instructions is refused, unless a static layer or the field allows it',
  async (t) => {
    t.match(
      problemsOf(withRegex('{ regex: "a{1000}" }')),
      /safe_regex\.regex: the RE2 program of this expression has a size of 1000 or more: the runtime key 're2\.max_program_size\.error_level' in a static layer allows 100/,
    );
    t.equal(problemsOf(withRegex('{ regex: "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}" }')), '');
    t.equal(problemsOf(withRegex('{ regex: "a{1000}" }', `{ ${KEY}: 2000 }`)), '');
    t.equal(problemsOf(withRegex('{ regex: "a{1000}" }', '{ re2: { max_program_size: { error_level: 2000 } } }')), '');
    t.match(problemsOf(withRegex('{ regex: "abcdefgh" }', `{ ${KEY}: 5 }`)), /in a static layer allows 5/);
    t.equal(problemsOf(withRegex('{ regex: "a{1000}", google_re2: { max_program_size: 2000 } }')), '');
    t.match(
      problemsOf(withRegex('{ regex: "a{1000}", google_re2: { max_program_size: 999 } }', `{ ${KEY}: 2000 }`)),
      /has a size of 1000 or more: max_program_size allows 999/,
    );
    t.match(
      problemsOf(withRegex(`{ regex: "${'('.repeat(9000)}a${')'.repeat(9000)}" }`)),
      /has a size of 18001 or more/,
    );
    t.match(
      problemsOf(withRegex(`{ regex: "${'.*'.repeat(16_000)}" }`, `{ ${KEY}: 1000000 }`)),
      /safe_regex\.regex: a regular expression that makes about \d+ instructions is too costly: at most 65536/,
    );
  },
);

t.test('the level for warnings is applied', async (t) => {
  const result = loadText(withRegex('{ regex: "a{50}" }', '{ re2.max_program_size.warn_level: 20 }'));
  t.match(result.warnings, [
    { message: /has a size of 50 or more, more than 're2\.max_program_size\.warn_level' \(20\)/ },
  ]);
});
