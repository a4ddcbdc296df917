// The primary part of an extension, as the server uses it.

import t from 'tap';
import type { Any } from '../../src/config/generated/api.js';
import type { HttpFilterExtension, PrimaryFilterContext, PrimaryPart } from '../../src/extensions/factories.js';
import { createPart } from '../../src/extensions/primary-part.js';

class RoutesPart implements PrimaryPart {
  readonly calls: string[] = [];

  close(): void {
    this.calls.push('close');
  }

  prepareRoutes(config: Any): () => void {
    this.calls.push(`prepare ${config['@type']}`);
    return () => this.calls.push('change');
  }
}

function partOf(own: PrimaryPart): PrimaryPart {
  const extension = { name: 'probe', createOnPrimary: () => own } as unknown as HttpFilterExtension;
  return createPart(extension, { '@type': 'a' }, {} as PrimaryFilterContext, { statPrefix: 'http.a.' })!;
}

t.test('all calls are passed to the part', (t) => {
  const own = new RoutesPart();
  const part = partOf(own);
  part.prepareRoutes!({ '@type': 'b' })();
  part.close();
  t.strictSame(own.calls, ['prepare b', 'change', 'close']);
  t.end();
});

t.test('a part without routes ignores route changes', (t) => {
  partOf({ close() {} }).prepareRoutes!({ '@type': 'b' })();
  t.end();
});
