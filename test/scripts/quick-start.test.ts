// What `npm start` serves over HTTPS.

import { readFileSync, statSync } from 'node:fs';
import { connect } from 'node:http2';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { httpsQuickStart } from '../../scripts/quick-start-https.js';
import { packagePath } from '../../src/common/package/package-root.js';
import { type Config, loopback, startBaton, tempDir } from '../e2e/harness/index.js';
import { exchange } from '../e2e/http/h2/http2-client.js';

t.test('the quick start serves HTTP/2 over HTTPS with a certificate for localhost', async (t) => {
  const directory = tempDir(t);
  const path = packagePath('examples/quickstart.yaml');
  const { certificate, configuration } = await httpsQuickStart(path, directory, 0);
  t.equal(statSync(join(directory, 'localhost.key')).mode & 0o077, 0, 'no other user can read its key');
  const config = parse(readFileSync(path, 'utf8')) as { admin: Config; static_resources: { listeners: Config[] } };
  config.admin['address'] = loopback(0);
  config.static_resources.listeners[0]!['address'] = loopback(0);
  const baton = await startBaton(t, { config: config as unknown as Config, args: ['--config-yaml', configuration] });
  const session = connect(`https://localhost:${await baton.listenerPort('https')}`, { ca: readFileSync(certificate) });
  t.teardown(() => session.destroy());
  t.match(await exchange(session, '/hello'), { status: 200, body: 'Hello from Baton.\n' });
  t.equal(session.alpnProtocol, 'h2');
});
