// Mutated SPIFFE trust bundle maps, as files and management servers deliver them. They run in this process.

import { BatonError } from '../../src/common/errors/errors.js';
import type { Random } from '../../src/common/random.js';
import { loadShim } from '../../src/io/shim.js';
import { clientSettings } from '../../src/tls/context-settings.js';
import { bundleMap } from '../../src/tls/trust-domains.js';
import { Authority } from '../../test/e2e/harness/certificates.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 50;
const MAX_INPUT_MS = 1000;

const TOKENS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\',
  'null',
  '"x5c"',
  '"__proto__"',
  '"use"',
  '\n',
  '=',
  '-----',
].map((text) => Buffer.from(text));

/** Throws a Finding when a map causes an exception other than a refusal, or takes long. */
export async function fuzzTrustBundles(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const root = await Authority.create();
  const x5c = [Buffer.from(root.x509.rawData).toString('base64')];
  const domain = { spiffe_sequence: 1, keys: [{ use: 'x509-svid', kty: 'EC', x5c }] };
  const seeds = [{ 'one.test': domain }, { 'one.test': domain, '': { keys: [domain.keys[0], domain.keys[0]] } }].map(
    (domains) => Buffer.from(JSON.stringify({ trust_domains: domains })),
  );
  const shim = loadShim();
  const secrets = { certificates: [], certificateNames: [], validationName: '', ticketKeys: undefined };
  const settings = clientSettings({}, { ...secrets, validation: undefined });
  const end = performance.now() + durationMs;
  let inputs = 0;
  let used = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const bytes = mutateBytes(random, seeds, TOKENS);
      const begin = performance.now();
      try {
        const made = shim.createTlsContext({ ...settings, trustDomains: bundleMap(bytes) });
        if (typeof made === 'number') {
          used++;
          shim.releaseTlsContext(made);
        }
      } catch (error) {
        if (!(error instanceof BatonError))
          throw new Finding(`${(error as Error).stack} for ${JSON.stringify(String(bytes))}`);
      }
      const ms = performance.now() - begin;
      if (ms > MAX_INPUT_MS) throw new Finding(`it took ${Math.round(ms)} ms: ${JSON.stringify(String(bytes))}`);
    }
    await new Promise(setImmediate);
  }
  return `${inputs} maps (${used} usable); no defect`;
}
