// Hints for older configurations exist only for existing messages and for removed fields.

import t from 'tap';
import { loadSchema } from '../../../src/config/schema/schema.js';
import { OLD_FIELDS } from '../../../src/config/text/hints.js';
import { problemsOf } from '../load-text.js';

t.test('there is no hint for a field that the API still has', async (t) => {
  const schema = loadSchema();
  for (const [name, fields] of Object.entries(OLD_FIELDS)) {
    const type = schema.message(name);
    t.ok(type, name);
    for (const field of Object.keys(fields)) t.notOk(type?.fields.has(field), `${name}.${field}`);
  }
});

t.test('a v2 front proxy gets a hint for each removed field', async (t) => {
  const found = problemsOf(`
static_resources:
  listeners:
  - address: { socket_address: { address: 0.0.0.0, port_value: 80 } }
    filter_chains:
    - filters:
      - name: envoy.http_connection_manager
        config: { stat_prefix: ingress_http }
      tls_context: {}
  clusters:
  - name: service1
    type: strict_dns
    hosts: [ { socket_address: { address: service1, port_value: 80 } } ]
    tls_context: {}
`);
  const lines = found.split('\n').filter((line) => line.includes('unknown field'));
  t.equal(lines.length, 4);
  for (const line of lines) t.match(line, 'it belongs to an older API; use ');
});
