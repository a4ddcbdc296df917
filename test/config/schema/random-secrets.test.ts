// In random messages, redaction hides every credential and changes nothing else. SECRETS_SEED and SECRETS_COUNT repeat or
// extend a run.

import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { loadSchema } from '../../../src/config/schema/schema.js';
import { redact, sensitiveValues } from '../../../src/config/schema/sensitive.js';
import { SecretIndex, secretsIn } from '../../../src/config/text/secrets.js';
import { withoutSecrets } from '../../../src/config/text/yaml/yaml-document.js';
import { Generator, MARKER } from './random-secrets.js';

const MESSAGES = [
  'envoy.config.bootstrap.v3.Bootstrap',
  'envoy.config.listener.v3.Listener',
  'envoy.config.cluster.v3.Cluster',
  'envoy.config.route.v3.RouteConfiguration',
  'envoy.config.route.v3.VirtualHost',
  'envoy.config.endpoint.v3.ClusterLoadAssignment',
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
  'envoy.config.core.v3.HealthCheck',
];

const COUNT = Number(process.env['SECRETS_COUNT'] ?? 500);

t.test('random messages', async (t) => {
  const seed = Number(process.env['SECRETS_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
  const schema = loadSchema();
  const generator = new Generator(schema, new Random(seed));
  let markers = 0;
  for (let index = 0; index < COUNT; index++) {
    const name = MESSAGES[index % MESSAGES.length]!;
    const { message, shown } = generator.message(name);
    const before = JSON.stringify(message);
    markers += before.split(MARKER).length - 1;
    const redacted = redact(message, sensitiveValues(schema, name, message));
    const wrong = [
      JSON.stringify(message) !== before && 'the message itself was changed',
      JSON.stringify(redacted) !== JSON.stringify(shown) && 'something else than the credentials is hidden',
      JSON.stringify(redact(redacted, sensitiveValues(schema, name, redacted))) !== JSON.stringify(redacted) &&
        'what is redacted is redacted again',
      withoutSecrets(before).includes(MARKER) && 'the text shows one',
      new SecretIndex(secretsIn(message)).hide(before).includes(MARKER) && 'a message about it shows one',
    ].filter((each) => each !== false);
    if (wrong.length === 0) continue;
    t.same({ redacted, wrong }, { redacted: shown, wrong: [] }, `${name}, seed ${seed}, message ${index}`);
    return;
  }
  t.ok(markers > COUNT, `${markers} credentials in ${COUNT} messages, seed ${seed}`);
});
