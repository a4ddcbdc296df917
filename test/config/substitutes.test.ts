// The alternatives that errors suggest for extensions that Baton lacks: only for extensions of the API that Baton does not
// have.

import t from 'tap';
import { packageOf, SUBSTITUTES } from '../../src/config/catalog/substitutes.js';
import { messageNameOf } from '../../src/config/schema/message-name.js';
import { loadSchema } from '../../src/config/schema/schema.js';
import { EXTENSIONS } from '../../src/extensions/index.js';

const inApi = new Set(loadSchema().messageNames().map(packageOf));
const here = new Set(EXTENSIONS.flatMap(({ typeUrls }) => typeUrls.map((url) => packageOf(messageNameOf(url)))));

for (const name of Object.keys(SUBSTITUTES)) {
  t.ok(inApi.has(`envoy.extensions.${name}`), `the API has ${name}`);
  t.notOk(here.has(`envoy.extensions.${name}`), `Baton lacks ${name}`);
}
